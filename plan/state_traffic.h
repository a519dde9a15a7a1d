// What one rank of a pipeline stage sends in one step for weights and gradients: reductions over replicas, gathers of
// ZeRO shards, sums over ranks that hold the same weights. Unit by unit, as parameter_layout.h cuts the flat buffers;
// what the runtime's counters must show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/collective.h"
#include "plan/plan.h"

namespace reckon {

struct StateTraffic {
  Group group = Group::gradient;
  Collective collective = Collective::all_reduce;
  std::string dtype;  // "uint8" for block-scaled numbers: codes and scales are sent as bytes
  std::int64_t calls = 0;
  double bytes_sent = 0;
};

/// Entries that differ in group, collective or dtype, of the rank that sends most. Throws std::logic_error on an
/// unchecked plan.
std::vector<StateTraffic> state_traffic(const Plan& plan, std::int64_t stage);

}  // namespace reckon
