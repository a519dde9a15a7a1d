// Parameters, gradients and optimizer states of one pipeline rank to the byte, unit by unit as the runtime allocates
// them (plan/parameter_layout.h), and the buffers of its gradient reductions: ZeRO 0-3 (arXiv 1910.02054; the 18 bytes
// a parameter of Megatron-LM's distributed optimizer page: 2 weight, 4 gradient, 4 master, 4 + 4 moments).
//
// Weights that are reduced over different ranks lie in different flat buffers: all weights, and the routed experts
// where expert parallelism divides them. Units of a sharded buffer are padded so that their shards are equal.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/plan.h"
#include "plan/stage_units.h"

namespace reckon {

struct StateMemory {
  Bytes parameters, gradients, optimizer;
  Bytes master;  // part of optimizer: the fp32 weights, where they are not the parameters themselves

  Bytes total() const { return parameters + gradients + optimizer; }
};

/// Of the shard that takes most.
StateMemory stage_states(const Plan& plan, std::int64_t stage);
/// The same where the stage's section_counts and the section_elements of the plan's degrees are known.
StateMemory stage_states(const Plan& plan, const SectionElements& elements, const SectionCounts& counts,
                         std::int64_t stage);

/// Of any rank that runs so many sections. `moments` are the optimizer's bytes of the buffer without spread experts, if
/// small tensors keep wider ones; by default all weights have moments in optimizer.states.
StateMemory rank_states(const Plan& plan, const SectionElements& elements, const SectionCounts& counts,
                        std::optional<Bytes> moments = std::nullopt);

/// Communication buffers of the rank: those made once for sums of gradients that do not travel as they are, copies in
/// buckets, tensors that wait for their collective, messages to neighbours.
Bytes stage_buffers(const Plan& plan, std::int64_t stage);
/// The part of them that depends on weights only, of any rank that runs so many sections; and the rest.
Bytes rank_buffers(const Plan& plan, const SectionElements& elements, const SectionCounts& counts);
Bytes micro_batch_buffers(const Plan& plan, std::int64_t micro_batch, std::int64_t chunks, std::int64_t stage);

}  // namespace reckon
