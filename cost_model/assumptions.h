// What a prediction rests on, and what a careful colleague would warn about.
#pragma once

#include <string>
#include <vector>

#include "plan/op_times.h"
#include "plan/plan.h"
#include "plan/step_documents.h"
#include "plan/step_profile.h"

namespace reckon {

/// Where the constants come from, the FLOP convention, and the simplifications that matter for this plan.
std::vector<std::string> assumptions(const Plan& plan, const OpTimes& times, const DocumentWork& documents);

/// Options without effect, near-full memory, implausible speed, a marketing peak. Of a finished profile.
std::vector<std::string> warnings(const StepProfile& profile);

}  // namespace reckon
