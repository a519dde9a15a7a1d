#include "plan/plan_special_keys.h"

#include <fmt/format.h>

#include <set>

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

namespace {

ClassPolicy policy_of(const YamlValue& value) {
  ClassPolicy policy;
  policy.recompute = value.text == "recompute";
  if (!policy.recompute) from_yaml(value, policy.format);
  return policy;
}

YamlValue policy_text(const ClassPolicy& policy) {
  return policy.recompute ? YamlValue::scalar("recompute") : to_yaml(policy.format);
}

/// One policy for all stages, or a list of one a stage.
void set_class(ActivationClass one, const YamlValue& value, ActivationSpec& activations) {
  activations.classes.erase(one);
  activations.classes_by_stage.erase(one);
  if (value.kind != YamlValue::Kind::sequence) {
    activations.classes[one] = policy_of(value);
    return;
  }
  if (value.items.empty()) refuse(value, "the list is empty; one format or 'recompute' a pipeline stage is needed");
  for (const YamlValue& item : value.items) activations.classes_by_stage[one].push_back(policy_of(item));
}

}  // namespace

/// Entries of a mapping written as a whole replace those of a preset; a single `activations.classes.gate` adds to them.
PlanKey activation_classes() {
  PlanKey key =
      described("activations.classes", "",
                "What happens to the kept tensors of one class, over `stored`: a number format, or `recompute` to "
                "drop and recompute them; a list gives each pipeline stage its own.");
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
      set_class(*activation_class(entry.key), entry.value, plan.activations);
    }
  };
  key.clear = [](Plan& plan) {
    plan.activations.classes.clear();
    plan.activations.classes_by_stage.clear();
  };
  key.get = [](const Plan& plan) {
    const ActivationSpec& activations = plan.activations;
    YamlValue mapping = YamlValue::mapping();
    mapping.flow = activations.classes.empty() && activations.classes_by_stage.empty();
    for (const auto& [one, policy] : activations.classes)
      if (!activations.classes_by_stage.contains(one)) mapping.add(std::string(name_of(one)), policy_text(policy));
    for (const auto& [one, policies] : activations.classes_by_stage) {
      std::vector<YamlValue> list;
      for (const ClassPolicy& policy : policies) list.push_back(policy_text(policy));
      mapping.add(std::string(name_of(one)), YamlValue::sequence(std::move(list)));
    }
    return mapping;
  };
  return key;
}

PlanKey activation_errors() {
  PlanKey key = described("activations.errors", "normalized L2 error",
                          "optimal: gradient error that storing a class in fp4_e2m1 causes, as `run --check-gradients` "
                          "measures it; classes left out have the published value.");
  key.type = "mapping";
  std::vector<std::string> classes;
  for (const ActivationClass one : policy_classes()) classes.emplace_back(name_of(one));
  key.allowed = "errors from 0";
  key.set = [classes](const YamlValue& value, Plan& plan) {
    if (value.kind != YamlValue::Kind::mapping)
      refuse(value, "classes with errors (gate: 0.04) are needed, found " + describe(value));
    for (const YamlEntry& entry : value.entries) {
      YamlValue name = YamlValue::scalar(entry.key);
      name.line = entry.line, name.column = entry.column;
      if (std::find(classes.begin(), classes.end(), entry.key) == classes.end()) refuse_choice(name, classes);
      double error = 0;
      from_yaml(entry.value, error);
      check_limits(entry.value, error, kNotNegative);
      plan.activations.errors[*activation_class(entry.key)] = error;
    }
  };
  key.clear = [](Plan& plan) { plan.activations.errors.clear(); };
  key.get = [](const Plan& plan) {
    YamlValue mapping = YamlValue::mapping();
    mapping.flow = true;
    for (const auto& [one, error] : plan.activations.errors) mapping.add(std::string(name_of(one)), to_yaml(error));
    return mapping;
  };
  return key;
}

PlanKey slow_ranks() {
  PlanKey key = described("sim.slow_ranks", "factor", "Ranks that compute slower: {rank: factor on its compute time}.");
  key.type = "mapping";
  key.allowed = "factors from 1e-6 to 1e+6";
  key.set = [](const YamlValue& value, Plan& plan) {
    if (value.kind != YamlValue::Kind::mapping)
      refuse(value, "ranks with factors ({3: 1.5}) are needed, found " + describe(value));
    std::set<std::int64_t> named;
    for (const YamlEntry& entry : value.entries) {
      YamlValue name = YamlValue::scalar(entry.key);
      name.line = entry.line, name.column = entry.column;
      std::int64_t rank = 0;
      double factor = 0;
      from_yaml(name, rank);
      check_limits(name, static_cast<double>(rank), {0, kMostRanks});
      from_yaml(entry.value, factor);
      check_limits(entry.value, factor, {1e-6, 1e6});
      if (!named.insert(rank).second) refuse(name, fmt::format("rank {} is named twice; once is needed", rank));
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
