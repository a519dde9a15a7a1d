#include "cost_model/score_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <regex>

#include "cost_model/score_cells.h"
#include "plan/errors.h"
#include "plan/layer_ops.h"
#include "plan/load_plan.h"

namespace reckon {

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_adapter(const std::string& model) {
  return lower(model).find("lora") != std::string::npos;
}

bool is_other_architecture(const std::string& model) {
  const std::string name = lower(model);
  for (const char* prefix : {"bert:", "t5:", "hybrid:", "nemotron:", "mimo:", "multimodal"})
    if (name.rfind(prefix, 0) == 0) return true;
  return name.find("mla") != std::string::npos;
}

bool sounds_like_experts(const std::string& model) {
  static const std::regex pattern("moe|mixtral|deepseek|experts|kimi|gpt-oss|a[0-9]+(\\.[0-9]+)?b");
  return std::regex_search(lower(model), pattern);
}

HardwareSpec row_hardware(ScoreCells& row, const ScoreLibrary& library, HardwareSpec hardware) {
  const ScoreSource& source = row.source();
  const std::string with_memory = row.text("gpu") + "-" + row.text("gpu_mem_gib");
  for (const std::string& key : {with_memory, row.text("gpu")}) {
    const auto found = source.hardware.find(key);
    if (found == source.hardware.end() || !library.hardware_named) continue;
    hardware = library.hardware_named(found->second);
    break;
  }
  if (const auto rate = source.attention_rate.find(row.text("gpu")); rate != source.attention_rate.end()) {
    hardware.time.attention_forward.flops_factor = 1.0 / rate->second;
    hardware.time.attention_backward.flops_factor = 1.0 / rate->second;
  }
  if (const auto devices = row.count("gpus_per_node")) {
    hardware.devices_per_node = static_cast<int>(*devices);
  } else {
    row.assumed("gpus_per_node");
    if (hardware.devices_per_node <= 0) hardware.devices_per_node = 8;
  }
  return hardware;
}

/// Sizes that could not be computed with, before they are: a sentence, or an empty text.
std::string impossible_size(const ScoreCells& row) {
  constexpr double kRanks = 1 << 20, kWidth = 1 << 24, kRows = 2147483647.0;
  const std::pair<const char*, double> most[] = {
      {"n_layers", 10000},     {"hidden", kWidth},   {"n_heads", kWidth},   {"n_kv_heads", kWidth},
      {"ffn_hidden", kWidth},  {"vocab", kRows},     {"seq_len", kRows},    {"micro_batch", kRows},
      {"global_batch", kRows}, {"gpus", kRanks},     {"tp", kRanks},        {"gpus_per_node", kRanks},
      {"pp", kRanks},          {"cp", kRanks},       {"dp", kRanks},        {"vpp", kRanks},
      {"ep", kRanks},          {"ulysses", kRanks},  {"ring", kRanks},      {"zero_group", kRanks},
      {"zero_stage", 3},       {"gpu_mem_gib", 1e6}, {"peak_mem_gib", 1e6}, {"global_batch_inferred", kRows}};
  for (const auto& [column, limit] : most)
    if (std::abs(row.number(column).value_or(0)) > limit)
      return fmt::format("{} is {}; at most {:.0f} is possible", column, row.text(column), limit);
  return "";
}

std::string set_batch(ScoreCells& row, RowPlan& result) {
  BatchSpec& batch = result.plan.batch;
  const ParallelSpec& parallel = result.plan.parallel;
  const auto micro_batch = row.count("micro_batch");
  if (!micro_batch || *micro_batch < 1) return "no_micro_batch";
  batch.micro_batch = *micro_batch;
  const std::int64_t once = batch.micro_batch * parallel.data;
  if (const auto global = row.count("global_batch")) {
    batch.global_batch = *global;
  } else {
    row.assumed("global_batch");
    if (const auto inferred = row.count("global_batch_inferred")) {
      batch.global_batch = *inferred;
    } else if (parallel.pipeline == 1) {
      batch.global_batch = once;
      result.batch_is_assumed = true;
    } else {
      return "no_global_batch";
    }
  }
  return batch.global_batch < 1 || batch.global_batch % once != 0 ? "batch_mismatch" : "";
}

/// bf16, fp16, fp8 (bf16 weights, FP8 products), nvfp4.
void set_precision(ScoreCells& row, Plan& plan) {
  const std::string cell = row.text_or("precision", "bf16");
  if (cell == "fp8") {
    plan.precision.compute = NumberFormat::fp8_e4m3;
  } else if (const auto format = number_format(cell)) {
    plan.precision.compute = *format;
  } else {
    throw RuleError(
        {{fmt::format("precision '{}' is not one of bf16, fp16, fp8, nvfp4", cell), {}, 0, 0, "precision.compute"}});
  }
  plan.precision.master = NumberFormat::fp32;
  plan.activations.stored = tensor_format(plan);
}

void set_options(ScoreCells& row, RowPlan& result) {
  Plan& plan = result.plan;
  plan.parallel.sequence = plan.parallel.tensor > 1 && row.count_or("sp", 1) != 0;
  if (plan.parallel.tensor == 1) std::erase(row.assumptions, "sp");
  plan.parallel.zero = static_cast<int>(row.count_or("zero_stage", 0));
  plan.parallel.zero_group = row.count("zero_group").value_or(0);
  set_schedule(row, plan.parallel);
  set_precision(row, plan);
  if (row.text("attention") == "unfused") plan.kernels.attention = AttentionKernel::unfused;
  if (row.empty("recompute")) row.assumed("recompute");
  const std::optional<std::string> known = row.known("recompute");
  const std::string recompute = row.empty("recompute") ? known.value_or("") : row.text("recompute");
  result.unknown_recompute = recompute.empty();
  if (!recompute.empty()) set_recompute(plan, recompute);
}

std::vector<std::pair<std::string, std::string>> described(const Plan& plan) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  const ParallelSpec& p = plan.parallel;
  return {{"model", plan.model.name},
          {"hardware", plan.hardware.name},
          {"batch.sequence_length", text(plan.batch.sequence_length)},
          {"batch.micro_batch", text(plan.batch.micro_batch)},
          {"batch.global_batch", text(plan.batch.global_batch)},
          {"parallel.data", text(p.data)},
          {"parallel.pipeline", text(p.pipeline)},
          {"parallel.tensor", text(p.tensor)},
          {"parallel.sequence", p.sequence ? "true" : "false"},
          {"parallel.ulysses", text(p.ulysses)},
          {"parallel.ring", text(p.ring)},
          {"parallel.expert", text(p.expert)},
          {"parallel.zero", text(p.zero)},
          {"parallel.zero_group", p.zero_group > 0 ? text(p.zero_group) : "auto"},
          {"parallel.chunks", text(p.chunks)},
          {"precision.compute", std::string(name_of(plan.precision.compute))},
          {"kernels.attention", plan.kernels.attention == AttentionKernel::flash ? "flash" : "unfused"}};
}

std::string first_sentences(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += (text.empty() ? "" : "; ") + diagnostic.message;
  return text;
}

/// Everything after the shape and the hardware are known; the reason or an empty text.
std::string complete(ScoreCells& row, const ScoreLibrary& library, RowPlan& result) {
  const auto gpus = row.count("gpus");
  if (!gpus || *gpus < 1) return "no_gpu_count";
  Plan& plan = result.plan;
  if (std::string reason = set_layout(row, *gpus, plan.parallel); !reason.empty()) return reason;
  if (std::string reason = set_batch(row, result); !reason.empty()) return reason;
  try {
    if (row.source().split_by_cost && plan.parallel.pipeline > 1 && plan.parallel.chunks == 1)
      plan.parallel.layers_per_stage = layers_by_cost(plan);
    set_options(row, result);
    for (const auto& [key, value] : row.source().plan) library.set(plan, key, value);
    for (const std::string& override_text : library.overrides) {
      const auto equals = override_text.find('=');
      library.set(plan, override_text.substr(0, equals), override_text.substr(equals + 1));
    }
    if (std::vector<Diagnostic> broken = check_plan(plan); !broken.empty()) throw RuleError(std::move(broken));
  } catch (const Error& error) {
    result.message = first_sentences(error.diagnostics());
    return "unsupported";
  }
  result.described = described(plan);
  return "";
}

}  // namespace

RowPlan row_plan(const CsvTable& table, std::size_t index, const ScoreLibrary& library) {
  static const ScoreSource unknown_source;
  const auto found = library.sources.find(table.cell(index, "source_id"));
  const ScoreSource& source = found == library.sources.end() ? unknown_source : found->second;
  ScoreCells row(table, index, source);
  RowPlan result;
  const auto skip = [&](std::string reason) {
    result.skipped = std::move(reason);
    return result;
  };
  const std::string& outcome = row.text("outcome");
  if (!outcome.empty() && outcome != "ok" && outcome != "oom") return skip("outcome");
  const std::string& name = row.text("model");
  if (result.message = impossible_size(row); !result.message.empty()) return skip("unsupported");
  if (is_adapter(name)) return skip("adapter");
  if (is_other_architecture(name)) return skip("architecture");
  const std::optional<ModelSpec> known = library.model ? library.model(name) : std::nullopt;
  if (!known && (row.count("n_layers").value_or(0) < 1 || row.count("hidden").value_or(0) < 1))
    return skip("no_model_shape");
  if (!known && (row.count("ep").value_or(1) > 1 || sounds_like_experts(name))) return skip("moe_shape_unknown");
  if (row.count("seq_len").value_or(0) < 1) return skip("no_seq_len");
  const std::optional<HardwareSpec> hardware = row.empty("gpu") || !library.hardware
                                                   ? std::nullopt
                                                   : library.hardware(row.text("gpu"), row.number("gpu_mem_gib"));
  if (!hardware) return skip("no_gpu");
  result.plan.model = row_model(row, known);
  result.plan.hardware = row_hardware(row, library, *hardware);
  result.plan.batch.sequence_length = *row.count("seq_len");
  std::string reason = complete(row, library, result);
  result.assumptions = std::move(row.assumptions);
  result.skipped = std::move(reason);
  return result;
}

}  // namespace reckon
