// Seconds of every op, collective and state update of a plan, from its hardware's constants.
#pragma once

#include "cost_model/op_cost.h"
#include "plan/op_times.h"
#include "plan/plan.h"
#include "plan/step_documents.h"

namespace reckon {

/// Throws RuleError when the device cannot compute in the plan's precision.
OpTimes estimate_op_times(const Plan& plan);

/// The same with the plan's documents given, and with attention work alone (then nothing is known of what a ring
/// sends).
OpTimes estimate_op_times(const Plan& plan, const DocumentWork& documents);
OpTimes estimate_op_times(const Plan& plan, const AttentionWork& work);

/// One section's ops alone, as if no ranks shared cores; without what ZeRO gathers and reduces.
SectionTimes section_op_times(const Plan& plan, const GroupLayouts& layouts, OpList list, const AttentionWork& work);

}  // namespace reckon
