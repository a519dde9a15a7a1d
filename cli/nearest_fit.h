// For a plan that does not fit: the smallest changes after which it does.
#pragma once

#include "plan/plan.h"
#include "plan/step_profile.h"

namespace reckon {

/// Fills verdict.nearest of a plan that does not fit: overrides of the fastest single change that fits, judged by the
/// closed form; stays empty when none does. `plan` is the plan before resolve, so that what is auto follows the change.
void find_nearest_fit(const Plan& plan, StepProfile& profile);

}  // namespace reckon
