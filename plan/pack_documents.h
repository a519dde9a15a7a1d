// Documents -> rows of equal length. A document longer than a row is cut into rows; what one row holds of a document is
// a piece, and attention and positions start anew with each piece. Packers of packed rows:
//   concatenate  in order of the stream, cut where a row ends: no padding, many cuts
//   first_fit    first-fit decreasing: no cuts, some padding
//   best_fit     best-fit decreasing: no cuts, some padding
//   balanced     longest first, always to the row with the fewest pairs that has room: no cuts, rows of like work
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace reckon {

struct Piece {
  std::int64_t document = 0;  // index in the stream
  std::int64_t first = 0;     // first token of the document that it holds
  std::int64_t tokens = 0;

  bool operator==(const Piece&) const = default;
};

/// Pieces in the order in which they lie in the row; padding follows them.
struct PackedRow {
  std::vector<Piece> pieces;

  std::vector<std::int64_t> lengths() const;
  std::int64_t tokens() const;
  /// Visible (query, key) pairs of one head: sum of l(l+1)/2.
  double pairs() const;
};

/// The rows of one step and what did not fit into them, in stream order: the next step starts with it.
struct PackedStep {
  std::vector<PackedRow> rows;
  std::vector<Piece> left;
};

/// Whole documents first, first + 1, ... as pieces.
std::vector<Piece> whole_documents(std::span<const std::int64_t> lengths, std::int64_t first = 0);

/// Packs everything, with as many rows as that takes.
std::vector<PackedRow> pack_documents(std::span<const Piece> pieces, std::int64_t row_tokens, Packer packer);
/// One piece a row, the rest is padding: the Batching baseline.
std::vector<PackedRow> pad_documents(std::span<const Piece> pieces, std::int64_t row_tokens);

/// Packs exactly `rows` rows; some are empty when the pieces run out. Give it pieces that hold at least rows *
/// row_tokens tokens, a little more for packers that do not cut, or for padded rows `rows` pieces.
PackedStep pack_step(std::span<const Piece> pieces, std::int64_t row_tokens, std::int64_t rows,
                     const DocumentSpec& documents);

/// Deals rows to `groups` (micro-batches of all replicas) of equal size so that the heaviest group has little more
/// pairs than the mean: the heaviest row first, always to the lightest group with room. rows.size() must be divisible
/// by it.
std::vector<std::vector<PackedRow>> deal_rows(std::vector<PackedRow> rows, std::int64_t groups);

struct PackingReport {
  std::int64_t rows = 0, documents = 0, pieces = 0;
  std::int64_t cut_documents = 0;     // documents of which some row holds only a part
  double real_token_share = 1.0;      // tokens that are no padding
  double sum_of_squares_share = 1.0;  // sum of l^2 / (rows * row_tokens^2): attention work against full causal rows
  double mean_square_length = 0.0;    // E[l^2] / E[l]: the length that governs attention cost
  double imbalance = 1.0;             // pairs of the heaviest row / mean
};
PackingReport packing_report(std::span<const PackedRow> rows, std::int64_t row_tokens);

}  // namespace reckon
