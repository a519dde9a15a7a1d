#include "plan/plan_special_keys.h"

#include "plan/method_preset.h"
#include "plan/plan_key_fields.h"

namespace reckon::plan_key {

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

PlanKey reference(std::string path, YamlValue (*get)(const Plan&), std::string meaning) {
  PlanKey key = described(std::move(path), "", std::move(meaning));
  key.type = "name, path or mapping";
  key.required = true;
  key.get = get;
  return key;
}

/// Entries of a mapping written as a whole replace those of a preset; a single `activations.classes.gate` adds to them.
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
  key.clear = [](Plan& plan) { plan.activations.classes.clear(); };
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
  key.clear = [](Plan& plan) { plan.sim.slow_ranks.clear(); };
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

}  // namespace reckon::plan_key
