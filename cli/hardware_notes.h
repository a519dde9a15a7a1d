// What a prediction should say about the hardware file that it stands on: that it is stale, or corrected.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/load_plan.h"

namespace reckon {

/// `plan` was loaded from `name` with `overrides`. A warning when it uses `hardware: local` and the machine has changed
/// since it was measured; a note when a stored correction acts.
void tell_about_hardware(const Plan& plan, const std::string& name, const std::vector<std::string>& overrides,
                         const ConfigPaths& paths, const Output& output);

}  // namespace reckon
