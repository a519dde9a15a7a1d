#include "cost_model/search_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plan/choices.h"
#include "plan/stage_sections.h"

namespace reckon {

namespace {

constexpr ActivationClass kWide[] = {ActivationClass::query, ActivationClass::key, ActivationClass::value,
                                     ActivationClass::attention_output, ActivationClass::head_input};
constexpr ActivationClass kRecomputed[] = {ActivationClass::qkv_input, ActivationClass::ffn_input,
                                           ActivationClass::down_input};

std::string agoq_classes() {
  std::string text = "{";
  for (const ActivationClass wide : kWide) text += fmt::format("{}: bf16, ", name_of(wide));
  for (const ActivationClass again : kRecomputed) text += fmt::format("{}: recompute, ", name_of(again));
  text.resize(text.size() - 2);
  return text + "}";
}

std::int64_t dense_width(const ModelSpec& model) {
  return has_section(model, Section::dense_layer) ? model.ffn_hidden : 0;
}

bool divides(std::int64_t divisor, std::int64_t number) {
  return number % divisor == 0;
}

}  // namespace

const std::vector<StorageChoice>& storage_choices() {
  static const std::vector<StorageChoice> choices{
      {std::nullopt}, {NumberFormat::fp8_e4m3}, {NumberFormat::fp6_e2m3}, {NumberFormat::fp4_e2m1}};
  return choices;
}

/// AGoQ's policy: what attention reads at 16 bits, elementwise results recomputed, the rest narrow.
void apply_storage(const StorageChoice& choice, ActivationSpec& activations) {
  activations.bits_by_stage.clear();
  if (!choice.format) return;
  activations.stored = *choice.format;
  activations.classes.clear();
  activations.classes_by_stage.clear();
  for (const ActivationClass wide : kWide) activations.classes[wide] = {false, NumberFormat::bf16};
  for (const ActivationClass again : kRecomputed) activations.classes[again] = {true, NumberFormat::bf16};
}

Plan plan_of(const Plan& base, const Candidate& candidate) {
  Plan plan = base;
  const Degrees& d = candidate.degrees;
  ParallelSpec& parallel = plan.parallel;
  parallel.tensor = d.tensor;
  parallel.ulysses = d.ulysses;
  parallel.ring = d.ring;
  parallel.expert = d.expert;
  parallel.pipeline = d.pipeline;
  parallel.data = d.data;
  parallel.sequence = d.tensor > 1;
  parallel.zero = candidate.zero;
  parallel.zero_group = 0;
  parallel.schedule = candidate.schedule;
  parallel.chunks = candidate.chunks;
  parallel.layers_per_stage.clear();
  plan.nodes = 0;
  plan.batch.micro_batch = candidate.micro_batch;
  plan.activations.recompute = candidate.recompute;
  plan.activations.recompute_layers.clear();
  apply_storage(storage_choices()[candidate.storage], plan.activations);
  return plan;
}

std::vector<std::pair<std::string, std::string>> overrides_of(const Plan& base, const Candidate& candidate) {
  const Degrees& d = candidate.degrees;
  std::vector<std::pair<std::string, std::string>> keys;
  const auto number = [&](const char* key, std::int64_t value) { keys.emplace_back(key, fmt::format("{}", value)); };
  if (base.nodes != 0) keys.emplace_back("nodes", "auto");
  number("batch.micro_batch", candidate.micro_batch);
  number("parallel.data", d.data);
  number("parallel.pipeline", d.pipeline);
  number("parallel.tensor", d.tensor);
  keys.emplace_back("parallel.sequence", d.tensor > 1 ? "true" : "false");
  number("parallel.ulysses", d.ulysses);
  number("parallel.ring", d.ring);
  number("parallel.expert", d.expert);
  number("parallel.zero", candidate.zero);
  if (base.parallel.zero_group != 0) keys.emplace_back("parallel.zero_group", "auto");
  keys.emplace_back("parallel.schedule", name_of(candidate.schedule));
  number("parallel.chunks", candidate.chunks);
  if (!base.parallel.layers_per_stage.empty()) keys.emplace_back("parallel.layers_per_stage", "auto");
  if (const auto format = storage_choices()[candidate.storage].format) {
    keys.emplace_back("activations.stored", name_of(*format));
    keys.emplace_back("activations.classes", agoq_classes());
  }
  if (!base.activations.bits_by_stage.empty()) keys.emplace_back("activations.bits_by_stage", "auto");
  keys.emplace_back("activations.recompute", name_of(candidate.recompute));
  keys.emplace_back("activations.recompute_layers", "auto");
  return keys;
}

std::string text_of(const std::vector<std::pair<std::string, std::string>>& overrides) {
  std::string text;
  for (const auto& [key, value] : overrides) text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = 1; i * i <= number; ++i)
    if (number % i == 0) {
      found.push_back(i);
      if (i != number / i) found.push_back(number / i);
    }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<std::string> broken_rule(const Plan& base, const Degrees& d) {
  const ModelSpec& model = base.model;
  const BatchSpec& batch = base.batch;
  const std::int64_t split = d.tensor * d.ulysses, context = d.ulysses * d.ring;
  if (!divides(d.tensor, model.heads)) return "heads not divisible by tensor";
  for (const std::int64_t width : {dense_width(model), model.moe.expert_ffn_hidden, model.moe.shared_ffn_hidden})
    if (!divides(d.tensor, width)) return "FFN width not divisible by tensor";
  if (!divides(split, model.heads)) return "heads not divisible by tensor x ulysses";
  if (!model.is_mla() && !divides(split, model.kv_heads) && !divides(model.kv_heads, split))
    return "KV heads neither split nor replicated evenly";
  if (base.kernels.attention == AttentionKernel::unfused && d.ring > 1) return "unfused attention with a ring";
  const bool halves = d.ring > 1 && base.documents.placement != Placement::contiguous &&
                      base.documents.placement != Placement::striped && base.documents.placement != Placement::balanced;
  if (!divides(context * (halves ? 2 : 1), batch.sequence_length)) return "sequence not divisible by ulysses x ring";
  if (!divides(d.tensor, batch.sequence_length / context)) return "tokens not divisible by tensor";
  if (d.expert > 1 && (!model.is_moe() || !divides(d.expert, model.moe.experts)))
    return "experts not divisible by expert";
  if (d.pipeline > model.layers) return "more pipeline stages than layers";
  if (!divides(d.data, batch.global_batch)) return "global batch not divisible by data";
  if (!divides(d.expert, d.data * context)) return "data x ulysses x ring not divisible by expert";
  return std::nullopt;
}

std::vector<Degrees> inner_degrees(const Plan& base, std::int64_t devices) {
  std::vector<Degrees> found;
  const std::vector<std::int64_t> experts =
      base.model.is_moe() ? divisors(base.model.moe.experts) : std::vector<std::int64_t>{1};
  for (const std::int64_t tensor : divisors(devices))
    for (const std::int64_t ulysses : divisors(devices / tensor))
      for (const std::int64_t ring : divisors(devices / tensor / ulysses))
        for (const std::int64_t expert : experts)
          if (expert <= devices / tensor) found.push_back({tensor, ulysses, ring, expert, 1, 1});
  return found;
}

std::vector<std::int64_t> chunk_choices(std::int64_t layers, std::int64_t pipeline) {
  std::vector<std::int64_t> found;
  for (std::int64_t chunks = 2; chunks * pipeline <= layers; ++chunks) {
    const bool even = layers % (pipeline * chunks) == 0;
    const bool power = (chunks & (chunks - 1)) == 0;
    if (even || (layers % pipeline != 0 && power)) found.push_back(chunks);
  }
  return found;
}

}  // namespace reckon
