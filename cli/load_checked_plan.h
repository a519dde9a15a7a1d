// What every command that takes a PLAN does first.
#pragma once

#include <string>
#include <vector>

#include "cli/find_configs.h"
#include "plan/plan.h"

namespace reckon {

/// Finds, reads, overrides and checks the plan. Throws ConfigError, or RuleError with every broken rule.
Plan load_checked_plan(const std::string& name_or_path, const std::vector<std::string>& overrides,
                       const ConfigPaths& paths);

}  // namespace reckon
