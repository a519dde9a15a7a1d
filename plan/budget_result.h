// What the budget solver found: how each stage spends its memory on activations, and what else could be had
// (docs/agoq.md). Filled by cost_model, printed by report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/units.h"

namespace reckon {

/// One way to store activations, priced.
struct BudgetPoint {
  std::string name;  // "optimal", "AGoQ's rule", "Megatron's layers", or the policy in short
  bool fits = false;
  Bytes memory;  // need of the worst stage
  Seconds step;
  double gradient_error = 0;  // predicted, normalized L2
  double cost = 0;            // seconds: step + weight * (step with everything kept) * gradient_error
};

struct BudgetResult {
  Bytes limit;
  double error_weight = 0;
  Seconds unlimited;  // step with everything kept
  BudgetPoint chosen;
  std::vector<std::string> by_stage;    // the chosen policy of each stage
  std::vector<BudgetPoint> references;  // published rules, under the same limit
  std::vector<BudgetPoint> pareto;      // no other point is better in time, memory and error; by memory
  std::optional<double>
      seconds_per_gib;  // rise of the cost with a twentieth less memory, for one GiB; empty: none fits
};

}  // namespace reckon
