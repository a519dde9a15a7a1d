// What --tolerance says.
#pragma once

#include <string>
#include <vector>

#include "report/compare_profiles.h"

namespace reckon {

/// "0.1" or "10%" -> 0.1. Throws ConfigError for anything but a finite share of 0 or more. `whole` is what the user
/// wrote, for the message.
double parse_share(const std::string& text, const std::string& whole);

/// "0.1" for the totals, "time=10%" or "memory.stage0.gradients=0" for a quantity, several with commas.
std::vector<Tolerance> parse_tolerances(const std::vector<std::string>& texts);

}  // namespace reckon
