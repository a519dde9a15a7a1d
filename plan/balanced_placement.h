// The placement made for one row: short documents whole on one rank, long ones cut over as many ranks as pay off.
#pragma once

#include "plan/token_placement.h"

namespace reckon {

/// The cheapest by predicted_cost of several fillings that differ in how unequal they let ranks be before they cut a
/// document, and of the fixed placements; so it is never worse than the best of those.
TokenPlacement balanced_placement(const DocumentBorders& documents, std::int64_t ring, const PlacementCosts& costs);

}  // namespace reckon
