#include "plan/plan_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "plan/method_preset.h"
#include "plan/nearest_name.h"
#include "plan/spec_yaml.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

/// Range of a number, both ends included.
struct Limits {
  double low = std::numeric_limits<double>::lowest();
  double high = std::numeric_limits<double>::max();
};

constexpr double kMostRanks = 1 << 20, kMostTokens = 1 << 30, kMostRows = 1 << 30, kMany = 1e12;

constexpr Limits kDegree{1, kMostRanks};
constexpr Limits kShare{0, 1};
constexpr Limits kPositive{std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
constexpr Limits kNotNegative{0, std::numeric_limits<double>::max()};

std::string limits_text(const Limits& limits) {
  const bool low = limits.low > std::numeric_limits<double>::lowest();
  const bool high = limits.high < std::numeric_limits<double>::max();
  if (low && limits.low == std::numeric_limits<double>::min())
    return high ? fmt::format("above 0, at most {}", limits.high) : "above 0";
  if (low && high) return fmt::format("{} to {}", limits.low, limits.high);
  if (low) return fmt::format("{} or more", limits.low);
  return high ? fmt::format("at most {}", limits.high) : "";
}

void check_limits(const YamlValue& at, double value, const Limits& limits) {
  if (value >= limits.low && value <= limits.high) return;
  refuse(at, fmt::format("{} is out of range: {}",
                         at.kind == YamlValue::Kind::scalar ? at.text : fmt::format("{}", value), limits_text(limits)));
}

template <class T>
constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <class T>
double number_in(const T& value) {
  if constexpr (kIsNumber<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(value.value);
  }
}

template <class T>
std::string type_of() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_integral_v<T>) return "whole number";
  if constexpr (std::is_floating_point_v<T>) return "number";
  if constexpr (std::is_same_v<T, std::string>) return "text";
  if constexpr (std::is_same_v<T, Bytes>) return "size";
  if constexpr (std::is_same_v<T, Seconds>) return "time";
  if constexpr (std::is_same_v<T, NumberFormat>) return "number format";
  return "choice";
}

template <class T>
std::string allowed_of(const Limits& limits) {
  if constexpr (HasChoices<T>) return list_choices<T>();
  return limits_text(limits);
}

template <class T>
void check_range(const YamlValue& at, const T& value, const Limits& limits) {
  if constexpr (kIsNumber<T> || std::is_same_v<T, Bytes> || std::is_same_v<T, Seconds>) {
    check_limits(at, number_in(value), limits);
  }
}

template <class Access>
using FieldOf = std::remove_cvref_t<std::invoke_result_t<Access, Plan&>>;

bool is_auto(const YamlValue& value) {
  return value.kind == YamlValue::Kind::scalar && !value.quoted && value.text == "auto";
}

PlanKey described(std::string path, std::string unit, std::string meaning) {
  PlanKey key;
  key.path = std::move(path);
  key.unit = std::move(unit);
  key.meaning = std::move(meaning);
  return key;
}

/// A key of one field. `access` returns a reference to it, for const and other plans.
template <class Access>
PlanKey field(std::string path, Access access, Limits limits, std::string unit, std::string meaning) {
  using T = FieldOf<Access>;
  PlanKey key = described(std::move(path), std::move(unit), std::move(meaning));
  key.type = type_of<T>();
  key.allowed = allowed_of<T>(limits);
  key.set = [access, limits](const YamlValue& value, Plan& plan) {
    T read{};
    from_yaml(value, read);
    check_range(value, read, limits);
    access(plan) = std::move(read);
  };
  key.get = [access](const Plan& plan) { return to_yaml(access(plan)); };
  return key;
}

template <class Access>
PlanKey field(std::string path, Access access, std::string meaning) {
  return field(std::move(path), access, Limits{}, "", std::move(meaning));
}

/// As field, but the user must give it.
template <class Access>
PlanKey required(std::string path, Access access, Limits limits, std::string unit, std::string meaning) {
  PlanKey key = field(std::move(path), access, limits, std::move(unit), std::move(meaning));
  key.required = true;
  return key;
}

/// A number or list whose zero or empty value is written `auto`.
template <class Access>
PlanKey field_or_auto(std::string path, Access access, Limits limits, std::string unit, std::string meaning) {
  using T = FieldOf<Access>;
  PlanKey key = field(std::move(path), access, limits, std::move(unit), std::move(meaning));
  key.allowed = "auto" + (key.allowed.empty() ? "" : ", " + key.allowed);
  key.set = [access, set = key.set](const YamlValue& value, Plan& plan) {
    if (is_auto(value)) {
      access(plan) = T{};
    } else {
      set(value, plan);
    }
  };
  key.get = [access, get = key.get](const Plan& plan) {
    return access(plan) == T{} ? YamlValue::scalar("auto") : get(plan);
  };
  return key;
}

/// A list of whole numbers, one of them for all, or auto (empty).
template <class Access>
PlanKey list_or_auto(std::string path, Access access, Limits limits, std::string unit, std::string meaning) {
  PlanKey key = described(std::move(path), std::move(unit), std::move(meaning));
  key.type = "list of whole numbers";
  key.allowed = "auto, " + limits_text(limits);
  key.set = [access, limits](const YamlValue& value, Plan& plan) {
    FieldOf<Access> numbers;
    if (value.kind == YamlValue::Kind::scalar && !is_auto(value)) {
      from_yaml(value, numbers.emplace_back());
      check_limits(value, number_in(numbers.back()), limits);
    } else if (!is_auto(value)) {
      from_yaml(value, numbers);
      if (numbers.empty()) refuse(value, "the list is empty; write auto or one number a stage");
      for (const YamlValue& item : value.items) {
        check_limits(item, number_in(numbers[static_cast<std::size_t>(&item - value.items.data())]), limits);
      }
    }
    access(plan) = std::move(numbers);
  };
  key.get = [access](const Plan& plan) {
    return access(plan).empty() ? YamlValue::scalar("auto") : to_yaml(access(plan));
  };
  return key;
}

/// A number format out of those that make sense in this place.
template <class Access>
PlanKey format_field(std::string path, Access access, std::vector<NumberFormat> allowed, std::string meaning) {
  PlanKey key = field(std::move(path), access, std::move(meaning));
  std::vector<std::string> names;
  for (const NumberFormat one : allowed) names.emplace_back(name_of(one));
  key.allowed = fmt::format("{}", fmt::join(names, ", "));
  key.set = [access, names](const YamlValue& value, Plan& plan) {
    NumberFormat read{};
    from_yaml(value, read);
    if (std::find(names.begin(), names.end(), value.text) == names.end()) refuse_choice(value, names);
    access(plan) = read;
  };
  return key;
}

std::vector<NumberFormat> storage_formats() {
  std::vector<NumberFormat> formats = all_number_formats();
  std::erase(formats, NumberFormat::fp64);
  return formats;
}

PlanKey reckon_version() {
  PlanKey key = described("reckon", "", "Version of the plan file's format.");
  key.type = "whole number";
  key.allowed = "1";
  key.set = [](const YamlValue& value, Plan&) {
    std::int64_t version = 0;
    from_yaml(value, version);
    if (version != 1)
      refuse(value, fmt::format("this is version {} of the plan format; this program reads version 1", version));
  };
  key.get = [](const Plan&) { return YamlValue::scalar("1"); };
  return key;
}

PlanKey method() {
  PlanKey key = described("method", "", "Preset: sets the keys of a published method; keys of the file override it.");
  key.type = "choice";
  std::vector<std::string> names = {"none"};
  for (const MethodPreset& preset : method_presets()) names.push_back(preset.name);
  key.allowed = fmt::format("{}", fmt::join(names, ", "));
  key.set = [names](const YamlValue& value, Plan& plan) {
    if (std::find(names.begin(), names.end(), value.text) == names.end()) refuse_choice(value, names);
    plan.method = value.text == "none" ? "" : value.text;
  };
  key.get = [](const Plan& plan) { return YamlValue::scalar(plan.method.empty() ? "none" : plan.method); };
  return key;
}

/// `model` and `hardware`: read by the loader, written whole.
PlanKey reference(std::string path, YamlValue (*get)(const Plan&), std::string meaning) {
  PlanKey key = described(std::move(path), "", std::move(meaning));
  key.type = "name, path or mapping";
  key.required = true;
  key.get = get;
  return key;
}

PlanKey activation_classes() {
  PlanKey key =
      described("activations.classes", "",
                "What happens to the kept tensors of one class, over `stored`: a number format, or `recompute` to "
                "drop and recompute them.");
  key.type = "mapping";
  std::vector<std::string> classes;
  for (const ActivationClass one : policy_classes()) classes.emplace_back(name_of(one));
  key.allowed = fmt::format("keys: {}", fmt::join(classes, ", "));
  key.set = [classes](const YamlValue& value, Plan& plan) {
    if (value.kind != YamlValue::Kind::mapping)
      refuse(value, "classes with formats (gate: int4) are needed, found " + describe(value));
    for (const YamlEntry& entry : value.entries) {
      YamlValue name = YamlValue::scalar(entry.key);
      name.line = entry.line, name.column = entry.column;
      if (std::find(classes.begin(), classes.end(), entry.key) == classes.end()) refuse_choice(name, classes);
      ClassPolicy policy;
      policy.recompute = entry.value.text == "recompute";
      if (!policy.recompute) from_yaml(entry.value, policy.format);
      plan.activations.classes[*activation_class(entry.key)] = policy;
    }
  };
  key.get = [](const Plan& plan) {
    YamlValue mapping = YamlValue::mapping();
    mapping.flow = plan.activations.classes.empty();
    for (const auto& [one, policy] : plan.activations.classes) {
      mapping.add(std::string(name_of(one)),
                  policy.recompute ? YamlValue::scalar("recompute") : to_yaml(policy.format));
    }
    return mapping;
  };
  return key;
}

PlanKey slow_ranks() {
  PlanKey key = described("sim.slow_ranks", "factor", "Ranks that compute slower: {rank: factor on its compute time}.");
  key.type = "mapping";
  key.allowed = "factors above 0";
  key.set = [](const YamlValue& value, Plan& plan) {
    if (value.kind != YamlValue::Kind::mapping)
      refuse(value, "ranks with factors ({3: 1.5}) are needed, found " + describe(value));
    for (const YamlEntry& entry : value.entries) {
      YamlValue name = YamlValue::scalar(entry.key);
      name.line = entry.line, name.column = entry.column;
      std::int64_t rank = 0;
      double factor = 0;
      from_yaml(name, rank);
      check_limits(name, static_cast<double>(rank), {0, kMostRanks});
      from_yaml(entry.value, factor);
      check_limits(entry.value, factor, kPositive);
      plan.sim.slow_ranks[rank] = factor;
    }
  };
  key.get = [](const Plan& plan) {
    YamlValue mapping = YamlValue::mapping();
    mapping.flow = true;
    for (const auto& [rank, factor] : plan.sim.slow_ranks) mapping.add(fmt::format("{}", rank), to_yaml(factor));
    return mapping;
  };
  return key;
}

PlanKey memory_limit() {
  PlanKey key =
      described("memory.limit", "bytes",
                "Memory a rank may allocate; auto = the device's memory minus its context. `run` enforces it.");
  key.type = "size";
  key.allowed = "auto, above 0 B";
  key.set = [](const YamlValue& value, Plan& plan) {
    plan.memory.limit.reset();
    if (is_auto(value)) return;
    Bytes limit;
    from_yaml(value, limit);
    if (limit.value <= 0) refuse(value, fmt::format("{} leaves no memory; a size above 0 B is needed", value.text));
    plan.memory.limit = limit;
  };
  key.get = [](const Plan& plan) {
    return plan.memory.limit ? to_yaml(*plan.memory.limit) : YamlValue::scalar("auto");
  };
  return key;
}

void add_what(std::vector<PlanKey>& keys) {
  keys.push_back(reckon_version());
  keys.push_back(reference(
      "model", [](const Plan& plan) { return model_yaml(plan.model); },
      "The model: a name of configs/models, a path (YAML or a Hugging Face config.json), or its keys; "
      "`base: NAME` starts from another model."));
  keys.push_back(reference(
      "hardware", [](const Plan& plan) { return hardware_yaml(plan.hardware); },
      "The cluster: a name of configs/hardware, a path, `local` (this machine, calibrated), or its keys; "
      "`base: NAME` starts from another."));
  keys.push_back(field_or_auto(
      "nodes", [](auto& p) -> auto& { return p.nodes; }, kDegree, "nodes",
      "Nodes to use; auto = as many as the degrees need."));
  keys.push_back(method());
}

/// "64k" may mean 64000 or 65536 tokens to its writer, so that it is refused; 64Ki is not.
PlanKey sequence_length() {
  PlanKey key = required(
      "batch.sequence_length", [](auto& p) -> auto& { return p.batch.sequence_length; }, {1, kMostTokens}, "tokens",
      "Length of one row; a row is a pack of documents.");
  key.set = [set = key.set](const YamlValue& value, Plan& plan) {
    set(value, plan);
    if (!value.text.ends_with('k') && !value.text.ends_with('K')) return;
    const std::int64_t decimal = plan.batch.sequence_length, binary = decimal / 1000 * 1024;
    refuse(value, fmt::format("'{}' tokens may mean {} or {}; write one of the two", value.text, decimal, binary));
  };
  return key;
}

void add_batch(std::vector<PlanKey>& keys) {
  keys.push_back(sequence_length());
  keys.push_back(field(
      "batch.micro_batch", [](auto& p) -> auto& { return p.batch.micro_batch; }, {1, kMostRows}, "rows",
      "Rows of one forward pass on one replica."));
  keys.push_back(required(
      "batch.global_batch", [](auto& p) -> auto& { return p.batch.global_batch; }, {1, kMostRows}, "rows",
      "Rows of one optimizer step over all replicas: micro_batch x data x accumulation."));
}

void add_parallel(std::vector<PlanKey>& keys) {
  keys.push_back(field(
      "parallel.data", [](auto& p) -> auto& { return p.parallel.data; }, kDegree, "ranks",
      "Replicas of the model, each with its own rows."));
  keys.push_back(field(
      "parallel.pipeline", [](auto& p) -> auto& { return p.parallel.pipeline; }, kDegree, "ranks", "Pipeline stages."));
  keys.push_back(field(
      "parallel.tensor", [](auto& p) -> auto& { return p.parallel.tensor; }, kDegree, "ranks",
      "Tensor parallel degree: splits heads, FFN width and vocabulary."));
  keys.push_back(field(
      "parallel.sequence", [](auto& p) -> auto& { return p.parallel.sequence; },
      "Megatron sequence parallelism within the tensor group."));
  keys.push_back(field(
      "parallel.ulysses", [](auto& p) -> auto& { return p.parallel.ulysses; }, kDegree, "ranks",
      "Context parallelism by all-to-all over heads; HSAP's intra group."));
  keys.push_back(field(
      "parallel.ring", [](auto& p) -> auto& { return p.parallel.ring; }, kDegree, "ranks",
      "Context parallelism by passing key/value blocks; HSAP's inter group."));
  keys.push_back(field(
      "parallel.expert", [](auto& p) -> auto& { return p.parallel.expert; }, kDegree, "ranks",
      "Ranks of data x context that the routed experts are spread over."));
  keys.push_back(field(
      "parallel.zero", [](auto& p) -> auto& { return p.parallel.zero; }, {0, 3}, "stage",
      "What is sharded over replicas: 0 nothing, 1 optimizer states, 2 also gradients, 3 also parameters."));
  keys.push_back(field_or_auto(
      "parallel.zero_group", [](auto& p) -> auto& { return p.parallel.zero_group; }, kDegree, "ranks",
      "Ranks a shard is spread over; auto = all of data x context, fewer = hybrid sharding."));
  keys.push_back(field(
      "parallel.schedule", [](auto& p) -> auto& { return p.parallel.schedule; }, "Pipeline schedule."));
  keys.push_back(field(
      "parallel.chunks", [](auto& p) -> auto& { return p.parallel.chunks; }, {1, 1024}, "virtual stages",
      "Virtual stages of a rank, for interleaved."));
  keys.push_back(list_or_auto(
      "parallel.layers_per_stage", [](auto& p) -> auto& { return p.parallel.layers_per_stage; }, {0, 100000}, "layers",
      "Layers of each virtual stage in model order; auto = as even as possible, no layer dropped."));
}

void add_documents(std::vector<PlanKey>& keys) {
  keys.push_back(field(
      "documents.source", [](auto& p) -> auto& { return p.documents.source; },
      "Where document lengths come from: single, a named distribution, a token file or a text folder."));
  keys.push_back(field(
      "documents.rows", [](auto& p) -> auto& { return p.documents.rows; },
      "packed: rows are filled with documents; padded: one document a row (the Batching baseline)."));
  keys.push_back(field(
      "documents.attention", [](auto& p) -> auto& { return p.documents.attention; },
      "per_document: no attention across documents; whole_row: one causal triangle (the Packing baseline)."));
  keys.push_back(field(
      "documents.placement", [](auto& p) -> auto& { return p.documents.placement; },
      "How the tokens of a row are dealt to the ring's ranks."));
}

void add_precision(std::vector<PlanKey>& keys) {
  using enum NumberFormat;
  keys.push_back(format_field(
      "precision.compute", [](auto& p) -> auto& { return p.precision.compute; },
      {bf16, fp16, fp32, fp64, fp8_e4m3, fp8_e5m2, mxfp4, nvfp4},
      "Format of matrix products; weights are held in it (in bf16 below 16 bits)."));
  keys.push_back(format_field(
      "precision.master", [](auto& p) -> auto& { return p.precision.master; }, {fp32, fp64, bf16, fp16},
      "Format of the weights that the optimizer updates."));
  keys.push_back(field(
      "kernels.attention", [](auto& p) -> auto& { return p.kernels.attention; },
      "flash: scores are never stored; unfused: the score matrix is kept."));
  keys.push_back(field(
      "kernels.loss", [](auto& p) -> auto& { return p.kernels.loss; },
      "fused: gradient in place of the logits; fp32_logits: an FP32 copy is kept; chunked: logits never whole."));
}

void add_activations(std::vector<PlanKey>& keys) {
  keys.push_back(field(
      "activations.method", [](auto& p) -> auto& { return p.activations.method; },
      "policy: the keys below decide; optimal: the budget solver decides per class and stage."));
  PlanKey stored = format_field(
      "activations.stored", [](auto& p) -> auto& { return p.activations.stored; }, storage_formats(),
      "Format in which tensors kept for backward are stored.");
  keys.push_back(stored);
  keys.push_back(activation_classes());
  keys.push_back(field(
      "activations.block", [](auto& p) -> auto& { return p.activations.block; }, {16, 2048}, "elements",
      "Elements that share one scale in block-scaled formats."));
  keys.push_back(field(
      "activations.scale", [](auto& p) -> auto& { return p.activations.scale; }, "Format of the block scales."));
  keys.push_back(list_or_auto(
      "activations.bits_by_stage", [](auto& p) -> auto& { return p.activations.bits_by_stage; }, {2, 16}, "bits",
      "Width of block-scaled kept tensors by pipeline stage; auto = more bits where fewer "
      "micro-batches are in flight (AGoQ's rule)."));
  keys.push_back(field(
      "activations.recompute", [](auto& p) -> auto& { return p.activations.recompute; },
      "What is dropped in forward and computed again in backward."));
  keys.push_back(list_or_auto(
      "activations.recompute_layers", [](auto& p) -> auto& { return p.activations.recompute_layers; }, {0, 100000},
      "layers", "Recomputed layers by stage, one number = every stage; auto = the fewest that fit."));
}

void add_states(std::vector<PlanKey>& keys) {
  using enum NumberFormat;
  keys.push_back(format_field(
      "gradients.stored", [](auto& p) -> auto& { return p.gradients.stored; },
      {fp32, bf16, fp16, fp64, fp8_e4m3, fp8_e5m2, int8}, "Format of accumulated gradients."));
  keys.push_back(format_field(
      "gradients.wire", [](auto& p) -> auto& { return p.gradients.wire; },
      {fp32, bf16, fp16, fp64, fp8_e4m3, fp8_e5m2, int8}, "Format in which gradients travel."));
  keys.push_back(field(
      "gradients.reduce", [](auto& p) -> auto& { return p.gradients.reduce; },
      "all_reduce, or all_to_all_sum: all-to-all, sum in FP32, then gather."));
  keys.push_back(field(
      "gradients.bucket", [](auto& p) -> auto& { return p.gradients.bucket; }, {1, 1e12}, "bytes",
      "Largest piece that one reduction carries."));
  keys.push_back(field(
      "optimizer.kind", [](auto& p) -> auto& { return p.optimizer.kind; }, "Optimizer."));
  keys.push_back(format_field(
      "optimizer.states", [](auto& p) -> auto& { return p.optimizer.states; }, {fp32, fp64, bf16, fp16, int8},
      "Format of the optimizer's moments; int8 is block-wise."));
  keys.push_back(field(
      "optimizer.learning_rate", [](auto& p) -> auto& { return p.optimizer.learning_rate; }, kNotNegative, "",
      "Learning rate after warm-up."));
  keys.push_back(field(
      "optimizer.minimum_learning_rate", [](auto& p) -> auto& { return p.optimizer.minimum_learning_rate; },
      kNotNegative, "", "Where a falling schedule ends."));
  keys.push_back(field(
      "optimizer.warmup_steps", [](auto& p) -> auto& { return p.optimizer.warmup_steps; }, {0, kMany}, "steps",
      "Steps over which the learning rate rises from 0."));
  keys.push_back(field(
      "optimizer.schedule", [](auto& p) -> auto& { return p.optimizer.schedule; },
      "How the learning rate falls after warm-up."));
  keys.push_back(field(
      "optimizer.beta1", [](auto& p) -> auto& { return p.optimizer.beta1; }, kShare, "",
      "Decay of AdamW's first moment; momentum of SGD."));
  keys.push_back(field(
      "optimizer.beta2", [](auto& p) -> auto& { return p.optimizer.beta2; }, kShare, "",
      "Decay of AdamW's second moment."));
  keys.push_back(field(
      "optimizer.epsilon", [](auto& p) -> auto& { return p.optimizer.epsilon; }, kNotNegative, "",
      "Added to the denominator of AdamW."));
  keys.push_back(field(
      "optimizer.weight_decay", [](auto& p) -> auto& { return p.optimizer.weight_decay; }, kNotNegative, "",
      "Decoupled weight decay."));
  keys.push_back(field(
      "optimizer.clip_gradient_norm", [](auto& p) -> auto& { return p.optimizer.clip_gradient_norm; }, kNotNegative, "",
      "Largest global gradient norm; 0 = no clipping."));
  keys.push_back(memory_limit());
}

void add_train(std::vector<PlanKey>& keys) {
  keys.push_back(field(
      "train.steps", [](auto& p) -> auto& { return p.train.steps; }, {1, kMany}, "steps", "Optimizer steps of `run`."));
  keys.push_back(field(
      "train.seed", [](auto& p) -> auto& { return p.train.seed; }, kNotNegative, "",
      "Seed of weights and data order."));
  keys.push_back(field(
      "train.data", [](auto& p) -> auto& { return p.train.data; },
      "Text folder, JSONL file or token file; empty = pseudo-random tokens."));
  keys.push_back(field(
      "train.tokenizer", [](auto& p) -> auto& { return p.train.tokenizer; },
      "bytes, or the path of a SentencePiece model."));
  keys.push_back(field(
      "train.checkpoint_every", [](auto& p) -> auto& { return p.train.checkpoint_every; }, {0, kMany}, "steps",
      "Steps between checkpoints; 0 = none."));
  keys.push_back(field(
      "train.warmup", [](auto& p) -> auto& { return p.train.warmup; }, {0, kMany}, "steps",
      "First steps that are left out of timing medians."));
  keys.push_back(field(
      "train.timeout", [](auto& p) -> auto& { return p.train.timeout; }, {1e-3, 1e9}, "seconds",
      "A rank that is silent for longer ends the run."));
}

void add_sim(std::vector<PlanKey>& keys) {
  keys.push_back(field(
      "sim.seed", [](auto& p) -> auto& { return p.sim.seed; }, kNotNegative, "", "Seed of the jitter."));
  keys.push_back(field(
      "sim.jitter", [](auto& p) -> auto& { return p.sim.jitter; }, {0, 10}, "",
      "Coefficient of variation of op times."));
  keys.push_back(slow_ranks());
  keys.push_back(field(
      "sim.network_scale", [](auto& p) -> auto& { return p.sim.network_scale; }, kPositive, "factor",
      "What if the network were this many times faster."));
  keys.push_back(field(
      "sim.compute_scale", [](auto& p) -> auto& { return p.sim.compute_scale; }, kPositive, "factor",
      "What if the devices were this many times faster."));
  keys.push_back(field(
      "sim.free_overlap", [](auto& p) -> auto& { return p.sim.free_overlap; },
      "What if overlapped compute were not slowed down."));
  keys.push_back(field(
      "sim.free_communication", [](auto& p) -> auto& { return p.sim.free_communication; },
      "What if communication took no time."));
}

/// Defaults that follow another key when they are not given (follow_defaults in load_plan.cpp).
std::string followed_default(const std::string& path) {
  if (path == "activations.stored") return "precision.compute (bf16 below 16 bits)";
  if (path == "gradients.wire") return "gradients.stored";
  return {};
}

std::string default_text(const PlanKey& key) {
  if (key.required) return "required";
  if (const std::string followed = followed_default(key.path); !followed.empty()) return followed;
  std::string text = write_yaml(key.get(Plan{}));
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text == "\"\"" ? "empty" : text;
}

std::vector<PlanKey> make_keys() {
  std::vector<PlanKey> keys;
  add_what(keys);
  add_batch(keys);
  add_parallel(keys);
  add_documents(keys);
  add_precision(keys);
  add_activations(keys);
  add_states(keys);
  add_train(keys);
  add_sim(keys);
  for (PlanKey& key : keys) key.default_text = default_text(key);
  return keys;
}

std::string last_part(std::string_view path) {
  return std::string(path.substr(path.rfind('.') + 1));
}

}  // namespace

const std::vector<PlanKey>& plan_keys() {
  static const std::vector<PlanKey> keys = make_keys();
  return keys;
}

const PlanKey* find_plan_key(std::string_view path) {
  for (const PlanKey& key : plan_keys()) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

std::string unknown_plan_key(std::string_view path) {
  std::vector<std::string> paths, elsewhere;
  for (const PlanKey& key : plan_keys()) {
    paths.push_back(key.path);
    paths.push_back(key.path.substr(0, key.path.find('.')));  // sections
    if (last_part(key.path) == last_part(path)) elsewhere.push_back(key.path);
  }
  const std::string shown = describe(YamlValue::scalar(std::string(path)));
  if (!elsewhere.empty()) {
    return fmt::format("unknown key {}; did you mean '{}'?", shown, fmt::join(elsewhere, "' or '"));
  }
  if (const std::string nearest = nearest_name(path, paths); !nearest.empty()) {
    return fmt::format("unknown key {}; did you mean '{}'?", shown, nearest);
  }
  std::vector<std::string> leaves;
  for (const PlanKey& key : plan_keys()) leaves.push_back(last_part(key.path));
  if (const std::string leaf = nearest_name(last_part(path), leaves); !leaf.empty()) {
    const auto index = std::find(leaves.begin(), leaves.end(), leaf) - leaves.begin();
    return fmt::format("unknown key {}; did you mean '{}'?", shown, plan_keys()[static_cast<std::size_t>(index)].path);
  }
  return fmt::format("unknown key {}; the keys are listed in configs/README.md", shown);
}

std::string plan_key_table() {
  std::string table = "| key | type | unit | default | values | meaning |\n|---|---|---|---|---|---|\n";
  for (const PlanKey& key : plan_keys()) {
    table += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", key.path, key.type, key.unit, key.default_text,
                         key.allowed, key.meaning);
  }
  return table;
}

}  // namespace reckon
