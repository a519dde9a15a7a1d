#include "cost_model/budget_stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "cost_model/gradient_error.h"
#include "cost_model/memory.h"
#include "cost_model/section_work.h"
#include "cost_model/stage_memory.h"

namespace reckon {

namespace {

/// Widths on offer: the family of `activations.stored` where that is block-scaled.
std::vector<NumberFormat> offered_formats(const ActivationSpec& activations) {
  if (is_block_scaled(activations.stored))
    return {with_bits(activations.stored, 8), with_bits(activations.stored, 6), with_bits(activations.stored, 5),
            with_bits(activations.stored, 4)};
  return {NumberFormat::int8, NumberFormat::int6, NumberFormat::int5, NumberFormat::fp4_e2m1};
}

}  // namespace

const SectionPrices& PolicyPrices::of(const std::map<ActivationClass, ClassPolicy>& classes) {
  std::vector<int> key;
  for (const auto& [one, policy] : classes) {
    key.push_back(static_cast<int>(one));
    key.push_back(policy.recompute ? -1 : static_cast<int>(policy.format));
  }
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  Plan plan = plan_;
  plan.activations.classes = classes;
  plan.activations.recompute = Recompute::full;
  SectionPrices prices;
  prices.table = section_table(plan, work_, 0);
  for (const Section section : {Section::embedding, Section::dense_layer, Section::moe_layer, Section::head}) {
    const SectionTimes& times = times_.of(section);
    if (times.ops.empty()) continue;  // the model has no such layer
    const bool layer = section == Section::dense_layer || section == Section::moe_layer;
    for (const bool recomputed : {false, true}) {
      const Recompute mode = recomputed && layer ? Recompute::full : Recompute::none;
      const KeptSet kept = kept_tensors(plan, times.list, mode, 0);
      const SectionWork work = section_work(OverlapLinks(plan), times_.storage, times, kept, Ledgers::none);
      prices.rows[variant({section, 0, recomputed})] = {work.forward.elapsed + work.backward.elapsed,
                                                        squared_gradient_error(plan, times.list, kept)};
    }
  }
  return known_.emplace(std::move(key), std::move(prices)).first->second;
}

BudgetStage::BudgetStage(const Plan& plan, std::int64_t stage, PolicyPrices& prices)
    : plan_(plan),
      stage_(stage),
      layers_(stage_layers(plan, stage)),
      prices_(prices),
      points_(schedule_points(plan.parallel.schedule, static_cast<int>(plan.parallel.pipeline), static_cast<int>(stage),
                              static_cast<int>(plan.parallel.chunks), static_cast<int>(plan.micro_batches()))) {}

std::vector<ChunkSections> BudgetStage::sections(std::int64_t recomputed_layers) const {
  Plan plan = plan_;
  plan.activations.recompute = Recompute::full;
  plan.activations.recompute_layers.assign(static_cast<std::size_t>(plan.parallel.pipeline), recomputed_layers);
  return stage_sections(plan, stage_);
}

Bytes BudgetStage::memory(const SectionPrices& prices, const std::vector<ChunkSections>& chunks) const {
  const Bytes allocated = stage_peak(plan_, prices.table, stage_, chunks, points_).allocated();
  return plan_.hardware.device.is_cpu ? allocated : allocated + communicator_bytes(plan_, stage_);
}

StagePrice BudgetStage::price(const StagePolicy& policy) const {
  const SectionPrices& prices = prices_.of(policy.classes);
  const std::vector<ChunkSections> chunks = sections(policy.recomputed_layers);
  StagePrice price;
  price.memory = memory(prices, chunks);
  for (const ChunkSections& chunk : chunks)
    for (const StageSection& section : chunk) {
      price.busy += prices.rows[variant(section)].busy;
      price.squared_error += prices.rows[variant(section)].squared_error;
    }
  return price;
}

StagePolicy BudgetStage::fitted(StagePolicy policy, Bytes limit) const {
  const SectionPrices& prices = prices_.of(policy.classes);
  std::int64_t fits = layers_, too_few = -1;  // more recomputed layers never need more
  while (fits - too_few > 1) {
    const std::int64_t tried = (fits + too_few) / 2;
    (memory(prices, sections(tried)) <= limit ? fits : too_few) = tried;
  }
  policy.recomputed_layers = fits;
  return policy;
}

Plan with_policies(const Plan& plan, const std::vector<StagePolicy>& policies) {
  Plan chosen = plan;
  ActivationSpec& activations = chosen.activations;
  activations.method = ActivationMethod::policy;
  activations.classes.clear();
  activations.classes_by_stage.clear();
  activations.bits_by_stage.clear();
  activations.stored = tensor_format(plan);
  activations.recompute_layers.clear();
  for (const StagePolicy& policy : policies) activations.recompute_layers.push_back(policy.recomputed_layers);
  const bool recomputes = std::any_of(policies.begin(), policies.end(),
                                      [](const StagePolicy& policy) { return policy.recomputed_layers > 0; });
  activations.recompute = recomputes ? Recompute::full : Recompute::none;
  if (!recomputes) activations.recompute_layers.assign(policies.size(), 0);
  for (const ActivationClass one : policy_classes()) {
    std::vector<ClassPolicy> by_stage;
    for (const StagePolicy& policy : policies) {
      const auto found = policy.classes.find(one);
      by_stage.push_back(found != policy.classes.end() ? found->second : ClassPolicy{false, tensor_format(plan)});
    }
    const bool alike = std::all_of(by_stage.begin(), by_stage.end(),
                                   [&](const ClassPolicy& policy) { return policy == by_stage.front(); });
    if (!alike) activations.classes_by_stage[one] = by_stage;
    else if (by_stage.front() != ClassPolicy{false, tensor_format(plan)}) activations.classes[one] = by_stage.front();
  }
  return chosen;
}

std::vector<BudgetKnob> budget_knobs(const Plan& plan) {
  using enum ActivationClass;
  const ModelSpec& model = plan.model;
  std::vector<std::vector<ActivationClass>> groups = {
      {norm_input}, {qkv_input},  {query, key, value}, {attention_output, projection_input},
      {ffn_input},  {down_input}, {head_input}};
  groups.push_back(model.gated_ffn ? std::vector{gate, up} : std::vector{ffn_hidden});
  if (model.is_moe()) groups.push_back({expert_input});
  if (model.is_mla()) groups.push_back({latent});
  const ClassPolicy as_computed{false, tensor_format(plan)};
  std::vector<BudgetKnob> knobs;
  for (const auto& group : groups) {
    BudgetKnob knob{group, {as_computed}};
    for (const NumberFormat format : offered_formats(plan.activations)) knob.options.push_back({false, format});
    knob.options.push_back({true, NumberFormat::bf16});
    knobs.push_back(std::move(knob));
  }
  return knobs;
}

std::string describe(const StagePolicy& policy, NumberFormat computed) {
  std::map<std::string, std::string> classes;  // by treatment
  for (const auto& [one, what] : policy.classes) {
    if (!what.recompute && what.format == computed) continue;
    classes[what.recompute ? "recompute" : std::string(name_of(what.format))] += fmt::format(" {}", name_of(one));
  }
  std::string text;
  for (const auto& [treatment, names] : classes)
    text += fmt::format("{}{}:{}", text.empty() ? "" : "; ", treatment, names);
  if (text.empty()) text = "all kept";
  if (policy.recomputed_layers > 0) text += fmt::format("; {} layers recomputed", policy.recomputed_layers);
  return text;
}

}  // namespace reckon
