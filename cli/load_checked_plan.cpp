#include "cli/load_checked_plan.h"

namespace reckon {

Plan load_checked_plan(const std::string& name_or_path, const std::vector<std::string>& overrides,
                       const ConfigPaths& paths) {
  Plan plan = load_plan(find_plan(name_or_path, paths), overrides, paths);
  if (auto broken = check_plan(plan); !broken.empty()) throw RuleError(std::move(broken));
  return plan;
}

}  // namespace reckon
