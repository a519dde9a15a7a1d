// The rules between the values of a plan. Every broken rule is listed, in the user's own key names, with the equation
// in numbers and the nearest legal values.
#include "plan/load_plan.h"
#include "plan/plan_rules.h"

namespace reckon {

std::vector<Diagnostic> check_plan(const Plan& plan) {
  Rules rules{plan};
  check_values(rules);
  if (rules.found.empty()) check_sizes(rules);
  if (!rules.found.empty()) return rules.found;  // the rules below divide by these numbers and multiply them
  check_parallelism(rules);
  check_training(rules);
  return rules.found;
}

}  // namespace reckon
