// Memory of a plan: one record per pipeline stage (its worst rank), the verdict, and the choices that follow from
// memory alone. Derivation: docs/memory.md.
#pragma once

#include <vector>

#include "plan/layer_ops.h"
#include "plan/plan.h"
#include "plan/step_profile.h"

namespace reckon {

/// Every stage of a resolved plan: bytes by component at the stage's peak moment, allocator slack, communicators and
/// context. With the given attention work, or that of the plan's documents.
std::vector<StageProfile> predict_memory(const Plan& resolved);
std::vector<StageProfile> predict_memory(const Plan& resolved, const AttentionWork& work);

/// Buffers of the communicators that a rank of the stage uses: one for every kind of group with more than one member.
Bytes communicator_bytes(const Plan& plan, std::int64_t stage);

/// The limit that a plan's need is compared with: `memory.limit`, or the device's memory minus the context.
Bytes memory_limit(const Plan& plan);
/// What a stage needs of it: allocated + slack + communicators on a device, allocated alone on a CPU, where the
/// runtime's allocator enforces the limit.
Bytes memory_need(const Plan& plan, const StageMemory& memory);

/// Whether the worst stage fits; if not, the component whose allocation crosses the limit first. Leaves `probability`
/// and `nearest` to the caller.
Verdict memory_verdict(const Plan& resolved, const std::vector<StageProfile>& stages);
Verdict memory_verdict(const Plan& resolved, const AttentionWork& work, const std::vector<StageProfile>& stages);

/// Layers that each stage has to recompute, in the plan's mode, so that it fits: the fewest. All of a stage's layers
/// where even those do not suffice. Empty in mode none.
std::vector<std::int64_t> fewest_recomputed_layers(const Plan& plan);

/// AGoQ's widths from the schedule's exact counts (arXiv 2605.00539): plan/pipeline_schedule.h. Empty unless
/// activations are stored below 16 bits. Counts of a stage are weighted by its layers where stages are uneven.
std::vector<int> automatic_bits(const Plan& plan);

}  // namespace reckon
