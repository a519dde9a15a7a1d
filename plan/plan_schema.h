// The one table of plan keys. Loading, overrides, suggestions, write_plan and the key list of configs/README.md all
// come from it: a new key is one field in plan.h and one row here.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/yaml_document.h"

namespace reckon {

struct PlanKey {
  std::string path;          // "parallel.tensor"
  std::string type;          // "whole number", "size", "choice" ...
  std::string unit;          // empty if none
  std::string default_text;  // "required" if there is none
  std::string allowed;       // "1 or more", "none, elementwise, ..."
  std::string meaning;
  bool required = false;
  /// Sets the field from YAML; throws ConfigError with the place of the value when type or range are wrong. Empty for
  /// `model` and `hardware`, which the loader reads itself.
  std::function<void(const YamlValue&, Plan&)> set;
  std::function<YamlValue(const Plan&)> get;
  /// Of mappings: empties the field before a whole mapping is set, which so replaces that of a preset.
  std::function<void(Plan&)> clear;
};

/// The rows of the table without their default texts (plan_key_rows.cpp); use plan_keys().
std::vector<PlanKey> make_plan_keys();

/// All keys, in the order of the plan file.
const std::vector<PlanKey>& plan_keys();

/// The key of that path, or null pointer.
const PlanKey* find_plan_key(std::string_view path);

/// "unknown key 'tensr'; did you mean 'parallel.tensor'?": what to say about a path that is no key.
std::string unknown_plan_key(std::string_view path);

/// Markdown table of all keys, the generated part of configs/README.md.
std::string plan_key_table();

}  // namespace reckon
