// What surrounds a plan: which part of its step is largest, and what one step of each knob would change.
#pragma once

#include <string>
#include <vector>

#include "cost_model/search_space.h"
#include "plan/search_result.h"
#include "plan/step_profile.h"

namespace reckon {

/// "compute 62 % of the step, tensor communication 21 %, bubble 9 %, ...; memory 91 % of the limit".
std::string bound_by(const StepProfile& profile);

/// Every knob of a candidate turned one step up and down. Where a degree doubles or halves, data makes up for it.
std::vector<KnobStep> knob_steps(const Plan& base, const Candidate& candidate);

}  // namespace reckon
