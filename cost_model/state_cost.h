// Seconds of what happens to parameters and gradients: the calls of plan/state_calls.h and the optimizer's update.
#pragma once

#include <string>
#include <vector>

#include "cost_model/op_cost.h"
#include "plan/state_calls.h"

namespace reckon {

/// One call after the other, each alone.
Seconds calls_time(const Plan& plan, const GroupLayouts& layouts, const std::vector<CollectiveCall>& calls);

/// reduction_calls, with the passes around a quantized exchange.
Seconds gradient_reduce_time(const Plan& plan, const GroupLayouts& layouts, WeightElements weights, Pieces pieces = {});

/// What an update with block-scaled gradients or moments is measured as, "int8 moments, int8 gradients": the passes
/// around it take longer than their bytes. Empty for others, which are priced by bytes.
std::string narrow_update(const Plan& plan);

/// Of the sample of op "optimizer" that a plan with such an update makes: `seconds` for `bytes` read and written.
OpSample update_sample(const Plan& plan, Seconds seconds, double bytes);

/// Norm, clip and update of the part of `weights` that this rank updates.
Seconds optimizer_time(const Plan& plan, WeightElements weights);

}  // namespace reckon
