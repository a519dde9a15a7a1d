// Bytes and calls of every collective of one step, by group: what the runtime's counters must show.
#pragma once

#include <vector>

#include "plan/op_times.h"
#include "plan/plan.h"
#include "plan/step_profile.h"

namespace reckon {

/// Of the pipeline rank that sends most, entry by entry. Control messages (loss sums, gradient norm, timing) are left
/// out.
std::vector<TrafficEntry> step_traffic(const Plan& plan, const OpTimes& times);

}  // namespace reckon
