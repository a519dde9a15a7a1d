// Plans one change away from a plan, as overrides.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace reckon {

/// One knob turned: recomputation, micro-batch, ZeRO stage, degrees against data, schedule, kernels. Rules may forbid
/// some of them.
std::vector<std::vector<std::string>> single_changes(const Plan& plan);

}  // namespace reckon
