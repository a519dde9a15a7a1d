// The plan inside a profile: the keys of the plan file as nested JSON objects, values as the file would have them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/load_plan.h"
#include "plan/yaml_document.h"
#include "report/checked_json.h"

namespace reckon {

/// A tree as JSON: mappings as objects, unquoted scalars by what they look like.
Json tree_json(const YamlValue& value);

Json plan_json(const Plan& plan);
Plan read_plan_json(const CheckedJson& json, const ConfigPaths& paths);

/// A value as it stands in a plan file: "4" is a number, "true" a truth value, "bf16" a text.
Json plan_value_json(const std::string& text);

/// {"parallel.tensor", "4"} -> {"parallel.tensor": 4}
Json overrides_json(const std::vector<std::pair<std::string, std::string>>& overrides);

/// The same nested by dots: {"parallel": {"tensor": 4}}.
Json nested_overrides_json(const std::vector<std::pair<std::string, std::string>>& overrides);

}  // namespace reckon
