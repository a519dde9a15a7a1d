// Table cells of compared quantities: a value in its unit, a signed error in its colour, and who is to blame.
#pragma once

#include <optional>
#include <string>

#include "report/compare_profiles.h"
#include "report/table.h"

namespace reckon {

std::string value_text(const std::optional<double>& value, Unit unit);

/// "+1.23 %" in the colour of its size. Without an error: "-" where both sides have a value, else "one side only".
Cell error_cell(const std::optional<double>& error, bool both_sides);

/// "forward.qkv adds most to the error of the step time (+1.2 % of the measured step)"; empty for totals and traffic.
/// `of` names the profile that is judged, where there are several.
std::string blame_line(const WorstRow& worst, const std::string& of = {});

}  // namespace reckon
