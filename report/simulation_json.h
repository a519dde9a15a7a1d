// A simulated profile as JSON: the profile record with one more key, "simulation" (docs/simulator.md).
#pragma once

#include <string>

#include "plan/simulation_details.h"
#include "plan/step_profile.h"

namespace reckon {

/// One JSON document with a final newline; read_profile reads its profile.
std::string simulation_json(const StepProfile& profile, const SimulationDetails& details);

}  // namespace reckon
