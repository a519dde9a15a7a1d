// Seconds of every op, collective and state update of a plan, from its hardware's constants.
#pragma once

#include "plan/op_times.h"
#include "plan/plan.h"

namespace reckon {

/// Throws RuleError when the device cannot compute in the plan's precision.
OpTimes estimate_op_times(const Plan& plan);

/// The same with the attention work of given documents instead of full rows.
OpTimes estimate_op_times(const Plan& plan, const AttentionWork& work);

}  // namespace reckon
