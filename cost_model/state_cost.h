// Seconds of what happens to parameters and gradients: reductions, gathers and the optimizer's update.
#pragma once

#include <cstdint>

#include "cost_model/op_cost.h"
#include "plan/parameter_layout.h"

namespace reckon {

/// Weights that one rank holds, those of routed experts apart: they are reduced over fewer ranks.
struct LocalWeights {
  double dense = 0, expert = 0;

  double total() const { return dense + expert; }
};

/// Weights of pipeline rank `stage`: its layers, and the embedding or head it holds (a tied table is on both).
LocalWeights stage_weights(const Plan& plan, const SectionElements& elements, std::int64_t stage);

/// Reduction of the gradients of `weights` over the ranks that hold the same ones, as the plan's ZeRO stage and
/// gradient method do it. Pieces are at most gradients.bucket bytes.
Seconds gradient_reduce_time(const Plan& plan, const GroupLayouts& layouts, LocalWeights weights);
std::int64_t gradient_buckets(const Plan& plan, LocalWeights weights);

/// Gathering of `weights` from their ZeRO shards.
Seconds parameter_gather_time(const Plan& plan, const GroupLayouts& layouts, LocalWeights weights, std::int64_t pieces);

/// Gradient of a tied table as it is sent; 0 where one rank holds the only copy.
Bytes tied_table_bytes(const Plan& plan, const SectionElements& elements);
/// All-reduce of it between the first and the last stage.
Seconds tied_table_time(const Plan& plan, const GroupLayouts& layouts, const SectionElements& elements);

/// Norm, clip and update of the weights that this rank updates.
Seconds optimizer_time(const Plan& plan, const GroupLayouts& layouts, LocalWeights weights);

}  // namespace reckon
