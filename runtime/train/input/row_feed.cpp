#include "runtime/train/input/row_feed.h"

#include <algorithm>
#include <numeric>

namespace reckon {
namespace {

constexpr std::size_t kKnownRows = 256;

std::int64_t targets_of(const PackedRow& row) {
  return row.tokens() - static_cast<std::int64_t>(row.pieces.size());  // a piece's last token has none
}

}  // namespace

RowFeed::RowFeed(const Plan& plan, const TokenStream& tokens, const Coordinates& place)
    : plan_(plan), tokens_(tokens), place_(place), costs_(placement_costs(plan)) {}

RowFeed::StepRows RowFeed::next_step() {
  if (!packer_) packer_.emplace(plan_);
  StepRows step;
  auto groups = packer_->next();
  for (const std::vector<PackedRow>& group : groups)
    for (const PackedRow& row : group) {
      step.useful_tokens += row.tokens();
      step.targets += plan_.has_documents() ? targets_of(row) : row.tokens();
    }
  const auto own = groups.begin() + place_.data * plan_.micro_batches();
  step.micro_batches.assign(std::make_move_iterator(own), std::make_move_iterator(own + plan_.micro_batches()));
  for (const std::vector<PackedRow>& micro_batch : step.micro_batches) {
    step.shares.emplace_back();
    for (const PackedRow& row : micro_batch) step.shares.back().push_back(share_of(row));
  }
  return step;
}

std::shared_ptr<const RowShare> RowFeed::share_of(const PackedRow& row) {
  if (known_.size() >= kKnownRows) known_.clear();
  std::shared_ptr<const RowShare>& known = known_[row.lengths()];
  if (!known)
    known =
        std::make_shared<const RowShare>(row_share(plan_, place_row(plan_, row, costs_), place_.ring, place_.ulysses));
  return known;
}

const RowFeed::StepRows& RowFeed::step_rows(std::int64_t step) {
  if (step == current_) return rows_;
  if (step != current_ + 1) {  // a run that is resumed, or started again
    if (ahead_.valid()) ahead_.wait();
    ahead_ = {};
    packer_.reset();
    for (std::int64_t skipped = 0; skipped < step; ++skipped) {
      if (!packer_) packer_.emplace(plan_);
      packer_->next();
    }
  }
  rows_ = ahead_.valid() ? ahead_.get() : next_step();
  current_ = step;
  ahead_ = std::async(std::launch::async, [this] { return next_step(); });
  return rows_;
}

std::int64_t RowFeed::targets(std::int64_t step) {
  return step_rows(step).targets;
}

std::int64_t RowFeed::useful_tokens(std::int64_t step) {
  return step_rows(step).useful_tokens;
}

/// Fills the three arrays of one whole row.
void RowFeed::fill(std::int64_t step, std::int64_t sample, const PackedRow& row) {
  const auto length = static_cast<std::size_t>(plan_.batch.sequence_length);
  positions_row_.resize(length);
  std::iota(positions_row_.begin(), positions_row_.end(), 0);
  tokens_row_.assign(length + 1, 0);
  targets_row_.assign(length, -1);
  if (!plan_.has_documents()) {
    tokens_.read(step, sample, tokens_row_);
    std::copy(tokens_row_.begin() + 1, tokens_row_.end(), targets_row_.begin());
    return;
  }
  const bool per_document = plan_.documents.attention == AttentionScope::per_document;
  std::size_t begin = 0;
  for (const Piece& piece : row.pieces) {
    const auto count = static_cast<std::size_t>(piece.tokens);
    tokens_.read_document(piece.document, piece.first, std::span(tokens_row_).subspan(begin, count));
    std::copy_n(tokens_row_.begin() + static_cast<std::ptrdiff_t>(begin) + 1, count - 1,
                targets_row_.begin() + static_cast<std::ptrdiff_t>(begin));
    const auto first = positions_row_.begin() + static_cast<std::ptrdiff_t>(begin);
    if (per_document) std::iota(first, first + static_cast<std::ptrdiff_t>(count), 0);
    begin += count;
  }
  if (per_document) std::fill(positions_row_.begin() + static_cast<std::ptrdiff_t>(begin), positions_row_.end(), 0);
}

RankRows RowFeed::rows(std::int64_t step, std::int64_t micro_batch) {
  const StepRows& rows = step_rows(step);
  const std::vector<PackedRow>& packed = rows.micro_batches.at(static_cast<std::size_t>(micro_batch));
  RankRows result;
  result.shares = rows.shares.at(static_cast<std::size_t>(micro_batch));
  for (std::size_t r = 0; r < packed.size(); ++r) {
    const std::int64_t sample =
        (micro_batch * plan_.parallel.data + place_.data) * plan_.batch.micro_batch + static_cast<std::int64_t>(r);
    fill(step, sample, packed[r]);
    for (const std::int64_t place : result.shares[r]->places) {
      const auto at = static_cast<std::size_t>(place);
      result.tokens.push_back(tokens_row_[at]);
      result.targets.push_back(targets_row_[at]);
      result.positions.push_back(positions_row_[at]);
    }
  }
  return result;
}

}  // namespace reckon
