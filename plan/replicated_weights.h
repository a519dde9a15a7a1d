// Weights that several tensor ranks hold alike although each rank's gradient of them covers a part of the work only, so
// that their gradients are summed once a step: with sequence parallelism all replicated weights (each rank sees its own
// tokens), and key and value weights whose heads are fewer than ranks (each rank sees its own query heads).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/layer_ops.h"
#include "plan/parameters.h"
#include "plan/plan.h"

namespace reckon {

/// Tensor ranks that hold the same key and value heads; 1 where every rank has heads of its own.
std::int64_t key_value_replicas(const Plan& plan);

/// Tensor ranks over which a weight's gradient is summed, 1 = none.
std::int64_t gradient_replicas(const Plan& plan, const Parameter& parameter);

/// One such sum: `bytes` of FP32 gradients all-reduced over `ranks` of the tensor group.
struct ReplicatedSum {
  Bytes bytes;
  std::int64_t ranks = 1;
};
/// Those of one section (one layer) of that kind, a call each.
std::vector<ReplicatedSum> replicated_sums(const Plan& plan, Section section);

}  // namespace reckon
