// Seconds of one collective: alpha + gamma * sqrt(S) + S / B where the hardware file has a fit for the group's layout,
// the fit of another group size inside a node transferred by bus bandwidth and step count, or a prior from NCCL's
// tuning constants (NVIDIA/nccl src/graph/tuning.cc, docs/collectives.md).
#pragma once

#include "plan/collective.h"
#include "plan/hardware_spec.h"
#include "plan/rank_grid.h"
#include "plan/units.h"

namespace reckon {

struct CostEstimate {
  Seconds seconds;
  double relative_error = 0;  // one standard deviation
  Provenance provenance = Provenance::assumed;
};

/// `bytes` is the whole tensor as nccl-tests counts it (all-gather: gathered size; all-to-all: one rank's send total;
/// send_receive: the message). A group of one rank costs nothing.
CostEstimate collective_cost(const HardwareSpec& hardware, Collective collective, const GroupLayout& layout,
                             Bytes bytes);

/// One message between two ranks, in the same node or not.
CostEstimate message_cost(const HardwareSpec& hardware, bool same_node, Bytes bytes);

}  // namespace reckon
