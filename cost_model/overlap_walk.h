// Elapsed time of a section whose computation and layer collectives run beside a background transfer (parameters being
// gathered, gradients being reduced). The rules are the simulator's, for one rank (docs/simulator.md): computation
// beside any transfer is slowed, a transfer beside computation is slowed, two transfers over the same links share them.
#pragma once

#include <vector>

#include "plan/units.h"

namespace reckon {

/// Computation and a layer collective that start together; the phase ends when both have ended.
struct OverlapPhase {
  Seconds compute, transfer;
  bool between_nodes = false;  // which links the transfer uses
};

struct OverlapRules {
  double compute_slowdown = 1.0, transfer_slowdown = 1.0;
  bool background_between_nodes = false;
};

/// Runs the phases one after another. `background` (seconds, alone) goes on beside them; what is left of it is returned
/// in it. Without background this is the section's plain elapsed time.
Seconds run_beside(const std::vector<OverlapPhase>& phases, const OverlapRules& rules, Seconds& background);

}  // namespace reckon
