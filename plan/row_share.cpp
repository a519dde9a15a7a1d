#include "plan/row_share.h"

namespace reckon {

PlacedRow place_row(const Plan& plan, const PackedRow& row, const PlacementCosts& costs) {
  PlacedRow placed;
  placed.documents = attention_borders(row.lengths(), plan.batch.sequence_length, plan.documents.attention);
  placed.placement = place_tokens(placed.documents, plan.parallel.ring, planned_placement(plan), costs);
  placed.mode = choose_transfer_mode(placed.documents, placed.placement);
  return placed;
}

RowShare row_share(const Plan& plan, const PlacedRow& row, std::int64_t ring_rank, std::int64_t ulysses_rank) {
  RowShare share;
  share.transfers = ring_transfers(row.documents, row.placement, ring_rank, row.mode);
  const std::vector<std::int64_t> places = token_positions(row.placement, ring_rank);
  const auto own = static_cast<std::ptrdiff_t>(places.size()) / plan.parallel.ulysses;
  const auto first = places.begin() + ulysses_rank * own;
  share.places.assign(first, first + own);
  return share;
}

}  // namespace reckon
