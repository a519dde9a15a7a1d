// The collectives that weights and gradients cause, as calls of a step: what the cost model prices and the simulator
// plays. Groups of one rank call nothing. (Bytes on the wire to the last padded element are in state_traffic.h.)
#pragma once

#include <string_view>
#include <vector>

#include "plan/collective.h"
#include "plan/plan.h"
#include "plan/stage_sections.h"

namespace reckon {

/// Equal pieces that the two buffers travel in.
struct Pieces {
  std::int64_t shared = 1, experts = 1;
};
/// Pieces of at most gradients.bucket bytes: how a whole rank's gradients travel under ZeRO-0 and 1.
Pieces gradient_buckets(const Plan& plan, WeightElements weights);

/// Sums the gradients of `weights` over the ranks that hold the same ones, once, as ZeRO stage and gradient method say.
/// ZeRO-2 and 3 do so for every section in every backward, in one piece.
std::vector<CollectiveCall> reduction_calls(const Plan& plan, WeightElements weights, Pieces pieces = {});
/// Gathers `weights` from their ZeRO shards: after the optimizer (ZeRO-1 and 2), or each section before each of its
/// forwards and backwards, in one piece (ZeRO-3).
std::vector<CollectiveCall> gather_calls(const Plan& plan, WeightElements weights, Pieces pieces = {});

/// Gradient of a tied table between the first and the last stage, in fp32: the whole, or a ZeRO-2 or 3 shard of it.
/// Nothing where one stage holds the only copy.
std::vector<CollectiveCall> tied_table_calls(const Plan& plan);
/// One activation, or its gradient, to a neighbouring stage.
CollectiveCall stage_message(const Plan& plan);

/// Component of the gradients' reduction in profiles: "gradient.reduce_scatter".
std::string_view reduction_component(const Plan& plan);

}  // namespace reckon
