// The plan inside a profile: the keys of the plan file as nested JSON objects, values as the file would have them.
#pragma once

#include "plan/load_plan.h"
#include "report/checked_json.h"

namespace reckon {

Json plan_json(const Plan& plan);
Plan read_plan_json(const CheckedJson& json, const ConfigPaths& paths);

}  // namespace reckon
