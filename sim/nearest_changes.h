// For a plan that runs out of memory: changes of one thing after which it fits.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/units.h"

namespace reckon {

/// What a changed plan would need; the caller resolves, checks and simulates it.
struct ChangedPlanResult {
  bool fits = false;
  Bytes need;
  Seconds step;
};

struct FittingChange {
  std::vector<std::string> overrides;  // "activations.recompute=full"
  Bytes need;
  Seconds step;
};

/// Changes of one thing, each with the keys that must follow it: recompute more, store activations in 8 or 4 bits,
/// smaller micro-batches, more sharding of states, half or a quarter of the replicas over as many times the tensor or
/// pipeline ranks. Those that fit, fastest step first. `evaluate` returns nothing for a plan that breaks a rule.
std::vector<FittingChange> nearest_changes(
    const Plan& plan, const std::function<std::optional<ChangedPlanResult>(const Plan&)>& evaluate);

}  // namespace reckon
