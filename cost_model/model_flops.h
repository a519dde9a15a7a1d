// FLOPs of a step under the convention that utilisation figures are stated in.
#pragma once

#include "plan/layer_ops.h"
#include "plan/plan.h"

namespace reckon {

/// "causal": matrix products of the weights that a token uses (the input table is looked up, not multiplied) and the
/// visible query-key pairs, backward counted as twice the forward. For a dense model on full rows that is
/// 6 B s (N + l h s), N all weights but the input table.
Flops model_flops(const Plan& plan, const AttentionWork& work);

/// FLOPs that the devices execute beyond those: recomputed layers' forward.
Flops recomputed_flops(const Plan& plan, const AttentionWork& work);

}  // namespace reckon
