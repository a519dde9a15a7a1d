// From a foreign file to a plan that the rules of plan/ accept, with every message in the source's own key names.
#pragma once

#include <string>
#include <vector>

#include "plan/exchange/foreign_plan.h"
#include "plan/load_plan.h"

namespace reckon {

/// Puts `overrides` into the imported keys ("model=llama2-7b"); keys they give are no longer missing. Throws
/// ConfigError.
void apply_overrides(ForeignPlan& imported, const std::vector<std::string>& overrides);

/// Loads and checks the imported plan when nothing is missing, else what there is of it. Throws ConfigError or
/// RuleError whose messages name the source's keys and lines.
void check_imported(const ForeignPlan& imported, const ConfigPaths& paths);

}  // namespace reckon
