// What one rank's micro-batches hold: its tokens of packed rows, their targets and positions, and how their attention
// goes. The rows of a step and everything planned for them are made one step ahead, beside the computation.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "plan/rank_grid.h"
#include "plan/row_share.h"
#include "runtime/train/input/token_stream.h"

namespace reckon {

/// One micro-batch on one rank, rows after each other.
struct RankRows {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;    // the token that follows in the same document; -1 = none: no loss
  std::vector<std::int32_t> positions;  // in the document; in the row where attention sees the row as a whole
  std::vector<std::shared_ptr<const RowShare>> shares;  // by row
};

class RowFeed {
 public:
  /// `plan` and `tokens` outlive it.
  RowFeed(const Plan& plan, const TokenStream& tokens, const Coordinates& place);

  /// Tokens of the whole step, all ranks, that have a target.
  std::int64_t targets(std::int64_t step);
  /// Tokens of the whole step that are no padding.
  std::int64_t useful_tokens(std::int64_t step);
  RankRows rows(std::int64_t step, std::int64_t micro_batch);

 private:
  struct StepRows {
    std::vector<std::vector<PackedRow>> micro_batches;                 // of this replica
    std::vector<std::vector<std::shared_ptr<const RowShare>>> shares;  // the same order
    std::int64_t targets = 0, useful_tokens = 0;
  };

  const StepRows& step_rows(std::int64_t step);
  StepRows next_step();
  std::shared_ptr<const RowShare> share_of(const PackedRow& row);
  void fill(std::int64_t step, std::int64_t sample, const PackedRow& row);

  const Plan& plan_;
  const TokenStream& tokens_;
  Coordinates place_;
  PlacementCosts costs_;
  std::optional<StepPacker> packer_;
  std::map<std::vector<std::int64_t>, std::shared_ptr<const RowShare>> known_;  // by lengths of the row's pieces
  std::int64_t current_ = -1;
  StepRows rows_;                                                       // of step current_
  std::vector<std::int32_t> tokens_row_, targets_row_, positions_row_;  // one whole row
  std::future<StepRows> ahead_;  // of the step after; last, so that it ends first
};

}  // namespace reckon
