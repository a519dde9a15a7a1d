// Parameters, gradients and optimizer states of one pipeline rank to the byte, unit by unit as the runtime allocates
// them (plan/parameter_layout.h), and the buffers of its gradient reductions.
#pragma once

#include <cstdint>

#include "cost_model/state_memory.h"
#include "plan/plan.h"

namespace reckon {

/// Of the shard that takes most.
StateMemory stage_states(const Plan& plan, std::int64_t stage);

/// Communication buffers of the rank: those made once for sums of gradients that do not travel as they are, copies in
/// buckets, tensors that wait for their collective, messages to neighbours.
Bytes stage_buffers(const Plan& plan, std::int64_t stage);

}  // namespace reckon
