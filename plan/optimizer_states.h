// How the optimizer's moments of one shard are stored: in optimizer.states, where int8 leaves the moments of small
// tensors in FP32 (as bitsandbytes does, arXiv 2110.02861: their share of memory is small, their share of the error is
// not). Neighbours that are stored alike form a run; blocks count from its start.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/parameter_layout.h"
#include "plan/plan.h"

namespace reckon {

/// Tensors with fewer elements on a rank keep FP32 moments.
inline constexpr std::int64_t kSmallTensor = 4096;

struct StateRun {
  FlatRange range;      // of the flat buffer, inside one unit
  bool narrow = false;  // 8 bits
};

/// The shard's weights in order, padding included. One run for each of its ranges where the format is not int8.
std::vector<StateRun> state_runs(const Plan& plan, const ParameterLayout& layout, std::int64_t shard);

/// Format of narrow moments.
Storage narrow_state(const Plan& plan);
/// Both moments of the shard with the largest, 0 for an optimizer without.
Bytes moment_bytes(const Plan& plan, const ParameterLayout& layout);

}  // namespace reckon
