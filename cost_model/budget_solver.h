// activations.method optimal: chooses for each class and stage whether to keep, store in fewer bits or recompute, so
// that step time + error_weight * (step time with everything kept) * predicted gradient error is least while every
// stage stays under the memory limit. Derivation and limits: docs/agoq.md.
#pragma once

#include "plan/budget_result.h"
#include "plan/plan.h"

namespace reckon {

struct SolvedBudget {
  Plan plan;  // with the policies; its method is `policy`
  BudgetResult result;
};

/// `plan` is checked and otherwise resolved. The solution is never worse, by that measure, than AGoQ's rule (4 to 8
/// bits by stage) or Megatron's fewest recomputed layers, where those fit. A plan that no policy fits gets the
/// smallest. `with_front` also fills the Pareto set and the price of a gigabyte, which takes longer.
SolvedBudget solve_budget(const Plan& plan, bool with_front);

}  // namespace reckon
