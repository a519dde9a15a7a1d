// "did you mean": the known name that a mistyped one most likely stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The known name with the fewest insertions, deletions, substitutions and neighbour swaps, case and dash/underscore
/// ignored; empty when even the best is too far to be a typing error (more than a third of the letters).
std::string nearest_name(std::string_view wrong, const std::vector<std::string>& known);

}  // namespace reckon
