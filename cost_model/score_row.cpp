#include "cost_model/score_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <regex>

#include "plan/errors.h"
#include "plan/layer_ops.h"
#include "plan/load_plan.h"
#include "plan/pipeline_schedule.h"

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

/// A whole number and nothing else. Throws ConfigError naming where it stands.
std::int64_t whole_number(const std::string& text, const std::string& where) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw ConfigError(fmt::format("{} of the source is '{}'; a whole number is needed", where, text));
  return value;
}

/// Reads the cells of one row; remembers whose default was used.
class Row {
 public:
  Row(const CsvTable& table, std::size_t row, const ScoreSource& source) : table_(table), row_(row), source_(source) {}

  bool empty(const std::string& column) const { return text(column).empty(); }
  const std::string& text(const std::string& column) const { return table_.cell(row_, column); }
  std::optional<std::int64_t> count(const std::string& column) const { return table_.count(row_, column); }
  std::optional<double> number(const std::string& column) const { return table_.number(row_, column); }

  /// What the source is known to do in an empty cell.
  std::optional<std::string> known(const std::string& column) const {
    const auto found = source_.cells.find(column);
    return found == source_.cells.end() ? std::nullopt : std::optional(found->second);
  }
  /// Cell, else what the source is known to do, else the default; the latter two are assumptions.
  std::string text_or(const std::string& column, const std::string& fallback) {
    if (!empty(column)) return text(column);
    assumed(column);
    return known(column).value_or(fallback);
  }
  std::int64_t count_or(const std::string& column, std::int64_t fallback) {
    if (const auto value = count(column)) return *value;
    assumed(column);
    const std::optional<std::string> value = known(column);
    return value ? whole_number(*value, "cells." + column) : fallback;
  }
  void assumed(const std::string& column) { assumptions.push_back(column); }

  std::vector<std::string> assumptions;

 private:
  const CsvTable& table_;
  std::size_t row_;
  const ScoreSource& source_;
};

const std::string* named_part(const std::map<std::string, std::string>& by_part, const std::string& model) {
  const std::string name = normalized_model_name(model);
  for (const auto& [part, value] : by_part)
    if (name.find(normalized_model_name(part)) != std::string::npos) return &value;
  return nullptr;
}

/// Sizes from the library where it knows the model, overridden by filled cells; else all from the cells.
ModelSpec row_model(Row& row, const ScoreSource& source, const std::optional<ModelSpec>& known) {
  ModelSpec model = known.value_or(ModelSpec{});
  if (!known) {
    model.name = row.text("model").empty() ? "model" : row.text("model");
    model.layers = *row.count("n_layers");
    model.hidden = *row.count("hidden");
    model.heads = row.count_or("n_heads", std::max<std::int64_t>(1, model.hidden / 128));
    model.kv_heads = row.count_or("n_kv_heads", model.heads);
    model.ffn_hidden = row.count_or("ffn_hidden", 4 * model.hidden);
    model.gated_ffn = row.count_or("gated_mlp", model.ffn_hidden >= 4 * model.hidden ? 0 : 1) != 0;
    const std::string* vocabulary = named_part(source.vocabulary, model.name);
    if (row.empty("vocab") && vocabulary != nullptr) {
      row.assumed("vocab");
      model.vocabulary = whole_number(*vocabulary, "vocabulary." + model.name);
    } else {
      model.vocabulary = row.count_or("vocab", 50304);
    }
    model.tied_head = !model.gated_ffn;
    if (!model.gated_ffn) {  // GPT-2 and its relatives
      model.family = "gpt2";
      model.norm = Norm::layer_norm;
      model.norm_bias = model.qkv_bias = model.projection_bias = model.ffn_bias = true;
      model.activation = Activation::gelu;
      model.position = Position::learned;
      model.position_rows = row.count("seq_len").value_or(0);
    }
  } else {
    model.layers = row.count("n_layers").value_or(model.layers);
    model.hidden = row.count("hidden").value_or(model.hidden);
    model.heads = row.count("n_heads").value_or(model.heads);
    model.kv_heads = row.count("n_kv_heads").value_or(model.kv_heads);
    model.ffn_hidden = row.count("ffn_hidden").value_or(model.ffn_hidden);
    model.vocabulary = row.count("vocab").value_or(model.vocabulary);
    if (row.count("gated_mlp")) model.gated_ffn = *row.count("gated_mlp") != 0;
    if (row.count("hidden") || row.count("n_heads")) model.head_dim = 0;
  }
  if (const std::string* tied = named_part(source.tied_models, row.text("model"))) model.tied_head = *tied == "1";
  if (model.head_dim == 0) model.head_dim = model.hidden / std::max<std::int64_t>(1, model.heads);
  if (model.position == Position::learned)
    model.position_rows = std::max(model.position_rows, row.count("seq_len").value_or(0));
  return model;
}

HardwareSpec row_hardware(Row& row, const ScoreSource& source, const ScoreLibrary& library, HardwareSpec hardware) {
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

/// tp, pp, cp, dp; an empty text on success, else the reason.
std::string set_layout(Row& row, std::int64_t gpus, ParallelSpec& parallel) {
  const auto degree = [&](const char* column) { return row.count(column).value_or(1); };
  if (gpus > 1 && row.empty("tp") && row.empty("pp") && row.empty("cp") && row.empty("dp")) return "no_layout";
  parallel.tensor = degree("tp");
  parallel.pipeline = degree("pp");
  parallel.chunks = degree("vpp");
  parallel.expert = degree("ep");
  const std::int64_t context = degree("cp");
  for (const char* column : {"tp", "pp", "cp", "dp", "vpp", "ep", "ulysses", "ring"})
    if (degree(column) < 1) return "layout_mismatch";
  parallel.ulysses = degree("ulysses");
  parallel.ring =
      row.count("ring").value_or(std::max<std::int64_t>(1, context / std::max<std::int64_t>(1, parallel.ulysses)));
  const std::int64_t model_ranks = parallel.tensor * parallel.pipeline * context;
  if (model_ranks < 1 || parallel.ulysses * parallel.ring != context) return "layout_mismatch";
  if (const auto data = row.count("dp")) {
    parallel.data = *data;
  } else {
    row.assumed("dp");
    if (gpus % model_ranks != 0) return "layout_mismatch";
    parallel.data = gpus / model_ranks;
  }
  if (model_ranks * parallel.data != gpus) {
    if (model_ranks * parallel.data * parallel.expert != gpus) return "layout_mismatch";
    parallel.data *= parallel.expert;
  }
  return parallel.data >= 1 ? "" : "layout_mismatch";
}

void set_schedule(const Row& row, ParallelSpec& parallel) {
  const std::string& schedule = row.text("schedule");
  parallel.schedule = parallel.chunks > 1 ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward;
  if (schedule == "gpipe") parallel.schedule = ScheduleKind::gpipe;
  if (schedule == "interleaved") parallel.schedule = ScheduleKind::interleaved;
  if (schedule == "1f1b") parallel.schedule = ScheduleKind::one_forward_one_backward;
}

/// nanotron's partition: layers and the head go to the current stage until it exceeds its share of the total cost
/// (weights of a block), the next one then starts.
std::vector<std::int64_t> layers_by_cost(const Plan& plan) {
  const ModelSpec& model = plan.model;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double layer = real(4 * model.heads * model.head_dim * model.hidden + 3 * model.ffn_hidden * model.hidden);
  const double total = layer * real(model.layers) + real(model.vocabulary * model.hidden);
  std::vector<std::int64_t> layers(static_cast<std::size_t>(plan.parallel.pipeline), 0);
  std::size_t stage = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    ++layers[stage];
    const bool full =
        layer * real(i + 1) > total * real(static_cast<std::int64_t>(stage) + 1) / real(plan.parallel.pipeline);
    if (full && stage + 1 < layers.size()) ++stage;
  }
  // The head may fill a stage before the last; plans have it last, so an empty stage takes a layer from the nearest
  // earlier one that has several: the first stages, where most micro-batches are in flight, stay as they were.
  for (std::size_t i = 1; i + 1 < layers.size(); ++i) {
    if (layers[i] > 0) continue;
    const auto donor = std::find_if(layers.rend() - static_cast<std::ptrdiff_t>(i), layers.rend(),
                                    [](std::int64_t count) { return count > 1; });
    if (donor == layers.rend()) continue;
    --*donor;
    layers[i] = 1;
  }
  return layers;
}

std::string set_batch(Row& row, RowPlan& result) {
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
void set_precision(Row& row, Plan& plan) {
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

void set_options(Row& row, RowPlan& result) {
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
std::string complete(Row& row, const ScoreLibrary& library, const ScoreSource& source, RowPlan& result) {
  const auto gpus = row.count("gpus");
  if (!gpus || *gpus < 1) return "no_gpu_count";
  Plan& plan = result.plan;
  if (std::string reason = set_layout(row, *gpus, plan.parallel); !reason.empty()) return reason;
  if (std::string reason = set_batch(row, result); !reason.empty()) return reason;
  try {
    if (source.split_by_cost && plan.parallel.pipeline > 1 && plan.parallel.chunks == 1)
      plan.parallel.layers_per_stage = layers_by_cost(plan);
    set_options(row, result);
    for (const auto& [key, value] : source.plan) library.set(plan, key, value);
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

std::string normalized_model_name(const std::string& name) {
  std::string text = lower(name);
  static const std::regex endings("\\([^)]*\\)|truncated to [0-9]+ layers|\\bsft\\b");
  text = std::regex_replace(text, endings, "");
  std::erase_if(text, [](char c) { return c == '-' || c == '_' || c == '.' || c == ' '; });
  return text;
}

void set_recompute(Plan& plan, const std::string& cell) {
  ActivationSpec& activations = plan.activations;
  activations.recompute_layers.clear();
  if (cell == "none") {
    activations.recompute = Recompute::none;
    return;
  }
  std::optional<std::int64_t> layers;
  if (cell == "selective") {
    activations.recompute = Recompute::selective;
  } else {
    activations.recompute = Recompute::full;
    if (cell != "full") {
      std::size_t end = 0;
      try {
        layers = std::stoll(cell, &end);
        if (cell.substr(end) == " layers") end = cell.size();
      } catch (const std::exception&) {
        end = 0;
      }
      if (end == 0 || end != cell.size() || *layers < 0) {
        throw RuleError({{"recompute '" + cell + "' is not one of none, selective, full, 'N layers'",
                          {},
                          0,
                          0,
                          "activations.recompute"}});
      }
    }
  }
  const std::vector<std::int64_t> by_virtual_stage = layers_per_virtual_stage(plan);
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    std::int64_t all = 0;
    for (std::int64_t v = stage; v < plan.virtual_stages(); v += plan.parallel.pipeline)
      all += by_virtual_stage[static_cast<std::size_t>(v)];
    activations.recompute_layers.push_back(layers ? std::min(*layers, all) : all);
  }
}

RowPlan row_plan(const CsvTable& table, std::size_t index, const ScoreLibrary& library) {
  static const ScoreSource unknown_source;
  const auto found = library.sources.find(table.cell(index, "source_id"));
  const ScoreSource& source = found == library.sources.end() ? unknown_source : found->second;
  Row row(table, index, source);
  RowPlan result;
  const auto skip = [&](std::string reason) {
    result.skipped = std::move(reason);
    return result;
  };
  const std::string& outcome = row.text("outcome");
  if (!outcome.empty() && outcome != "ok" && outcome != "oom") return skip("outcome");
  const std::string& name = row.text("model");
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
  result.plan.model = row_model(row, source, known);
  result.plan.hardware = row_hardware(row, source, library, *hardware);
  result.plan.batch.sequence_length = *row.count("seq_len");
  std::string reason = complete(row, library, source, result);
  result.assumptions = std::move(row.assumptions);
  result.skipped = std::move(reason);
  return result;
}

}  // namespace reckon
