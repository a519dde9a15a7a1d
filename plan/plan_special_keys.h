// Keys that are more than one field: versions, presets, references, mappings. Private to the schema.
#pragma once

#include <string>

#include "plan/plan_schema.h"

namespace reckon::plan_key {

PlanKey reckon_version();
PlanKey method();
/// `model` and `hardware`: read by the loader, written whole.
PlanKey reference(std::string path, YamlValue (*get)(const Plan&), std::string meaning);
PlanKey sequence_length();
PlanKey activation_classes();
PlanKey activation_errors();
PlanKey slow_ranks();
PlanKey memory_limit();

}  // namespace reckon::plan_key
