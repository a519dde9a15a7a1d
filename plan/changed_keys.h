// In which keys two plans differ.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/plan_schema.h"

namespace reckon {

struct ChangedKey {
  std::string key;            // "parallel.tensor"; "model.layers" where the models have one name
  std::string first, second;  // whole values on one line; "default" where a model leaves its key out
};

/// In the order of the plan file. Models and hardware of different names are one row each.
std::vector<ChangedKey> changed_keys(const Plan& first, const Plan& second);

/// The row of the table that holds a changed key: itself, or `model` for "model.layers".
const PlanKey& key_of(const ChangedKey& changed);

}  // namespace reckon
