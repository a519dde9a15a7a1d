// Elapsed time of a section whose computation and layer collectives run beside background transfers (gradients being
// reduced, parameters being gathered). The rules are the simulator's, for one rank (docs/simulator.md): computation
// beside any transfer is slowed, a transfer beside computation is slowed, two transfers over the same links share them.
#pragma once

#include <span>
#include <vector>

#include "plan/units.h"

namespace reckon {

/// Computation and a layer collective that start together; the phase ends when both have ended.
struct OverlapPhase {
  Seconds compute, transfer;
  bool between_nodes = false;  // which links the transfer uses
};

/// A transfer that goes on beside phases: seconds left of it, alone.
struct Background {
  Seconds left;
  bool between_nodes = false;
};

struct OverlapRules {
  double compute_slowdown = 1.0, transfer_slowdown = 1.0;
  bool reduce_between_nodes = false, gather_between_nodes = false;  // links of the two kinds of background
};

/// Runs the phases one after another, and beside them the background transfers, also one after another. What is left of
/// those is returned in them. Without background this is the section's plain elapsed time.
Seconds run_beside(const std::vector<OverlapPhase>& phases, const OverlapRules& rules,
                   std::span<Background> background);

/// By how much a section that takes `alone` takes longer when the reduction of the section before it and then the
/// gather for the section after it go on beside it, and are waited for at its end.
Seconds section_excess(const std::vector<OverlapPhase>& phases, Seconds alone, const OverlapRules& rules,
                       Seconds reduce, Seconds gather);

}  // namespace reckon
