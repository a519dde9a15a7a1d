// Seconds of what happens to parameters and gradients: the calls of plan/state_calls.h and the optimizer's update.
#pragma once

#include <vector>

#include "cost_model/op_cost.h"
#include "plan/state_calls.h"

namespace reckon {

/// One call after the other, each alone.
Seconds calls_time(const Plan& plan, const GroupLayouts& layouts, const std::vector<CollectiveCall>& calls);

/// reduction_calls, with the passes around a quantized exchange.
Seconds gradient_reduce_time(const Plan& plan, const GroupLayouts& layouts, WeightElements weights, Pieces pieces = {});

/// Norm, clip and update of the part of `weights` that this rank updates.
Seconds optimizer_time(const Plan& plan, WeightElements weights);

}  // namespace reckon
