// Weights that several tensor ranks hold alike although each rank's gradient of them covers a part of the work only, so
// that their gradients are summed once a step: with sequence parallelism all replicated weights (each rank sees its own
// tokens), norms of single heads (each rank has its own), and key and value weights whose heads are fewer than ranks
// (each rank sees its own query heads). The sums come after those over data replicas, so that with ZeRO each rank sends
// what its shard holds of them, in one message for each of the two groups.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/parameter_layout.h"
#include "plan/parameters.h"
#include "plan/plan.h"

namespace reckon {

/// Tensor ranks that hold the same key and value heads; 1 where every rank has heads of its own.
std::int64_t key_value_replicas(const Plan& plan);

/// Tensor ranks over which a weight's gradient is summed, 1 = none.
std::int64_t gradient_replicas(const Plan& plan, const Parameter& parameter);

/// What shard `shard` holds of the weights of that split whose gradients are summed: ranges of the flat buffer, each in
/// one unit.
std::vector<FlatRange> replicated_ranges(const Plan& plan, const ParameterLayout& layout, Split split,
                                         std::int64_t shard);
/// Elements of those ranges by shard.
std::vector<std::int64_t> replicated_elements(const Plan& plan, const ParameterLayout& layout, Split split);

}  // namespace reckon
