// What one context rank holds of one row and how its attention goes: placement and transfers of the plan's documents.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/pack_documents.h"
#include "plan/ring_transfers.h"
#include "plan/step_documents.h"

namespace reckon {

struct RowShare {
  std::vector<std::int64_t> places;  // position in the row of each of the rank's tokens, in its order
  RingTransfers transfers;           // of its ring rank, the same for all Ulysses ranks of it
};

/// One row of documents as attention sees them, placed as the plan says (auto: the cheapest placement).
struct PlacedRow {
  DocumentBorders documents;
  TokenPlacement placement;
  TransferMode mode = TransferMode::direct;
};
PlacedRow place_row(const Plan& plan, const PackedRow& row, const PlacementCosts& costs);

RowShare row_share(const Plan& plan, const PlacedRow& row, std::int64_t ring_rank, std::int64_t ulysses_rank);

}  // namespace reckon
