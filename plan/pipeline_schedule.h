// What one pipeline rank does in one step, as data: forward and backward actions in order. Cost model, simulator and
// runtime all walk these lists. Sends and receives follow from them: a forward passes its output to the next virtual
// stage, a backward its input gradient to the previous one.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace reckon {

enum class ActionKind { forward, backward };

struct Action {
  ActionKind kind = ActionKind::forward;
  int micro_batch = 0;
  int chunk = 0;  // virtual stage of this rank: chunk * stages + stage in model order

  bool operator==(const Action&) const = default;
};

/// Actions of rank `stage` of `stages`. gpipe and 1f1b need chunks == 1; interleaved needs micro_batches % stages == 0
/// (Megatron's order: 2(p-i-1) + (v-1)p warm-up forwards).
std::vector<Action> pipeline_actions(ScheduleKind kind, int stages, int stage, int chunks, int micro_batches);

/// Largest number of chunk activations alive at once on that rank, counted on the list: p=4, v=2, m=8: 11, 9, 7, 5.
int peak_in_flight(ScheduleKind kind, int stages, int stage, int chunks, int micro_batches);

/// AGoQ's widths (2605.00539, section on pipeline stages): round(bits * N_0 / N_i) from the exact counts, at least
/// `bits`, at most 8. p=4, v=2, m=8, 4 bits: 4, 5, 6, 8.
std::vector<int> bits_by_stage(const std::vector<int>& in_flight, int bits);

/// Layers of each virtual stage in model order: the plan's list, or as even as possible (earlier stages get the rest).
std::vector<std::int64_t> layers_per_virtual_stage(const Plan& plan);

}  // namespace reckon
