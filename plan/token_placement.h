// Which rank of the ring holds which tokens of a row. A pure function from document borders and ring degree to ranges.
//
// Every rank holds the same number of tokens, row_tokens / ring, in rising order of their position in the row. Ulysses
// ranks of one ring rank share its tokens in equal consecutive runs of that order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace reckon {

/// Documents of one row by their positions. Tokens from starts.back() on are padding: nobody attends to them.
struct DocumentBorders {
  std::vector<std::int64_t> starts;  // of each document, and the end of the last
  std::int64_t row_tokens = 0;

  std::int64_t documents() const { return static_cast<std::int64_t>(starts.size()) - 1; }
  std::int64_t length(std::int64_t document) const {
    return starts[static_cast<std::size_t>(document) + 1] - starts[static_cast<std::size_t>(document)];
  }
};

/// Throws std::logic_error when a length is not positive or they do not fit into the row.
DocumentBorders document_borders(std::span<const std::int64_t> lengths, std::int64_t row_tokens);
/// As attention sees them: with AttentionScope::whole_row the row, padding included, is one document.
DocumentBorders attention_borders(std::span<const std::int64_t> lengths, std::int64_t row_tokens, AttentionScope scope);

/// Positions begin, begin + stride, ... below end.
struct TokenRange {
  std::int64_t begin = 0, end = 0, stride = 1;

  std::int64_t count() const { return (end - begin + stride - 1) / stride; }
  bool operator==(const TokenRange&) const = default;
};

struct TokenPlacement {
  Placement kind = Placement::contiguous;      // never automatic: what was chosen
  std::vector<std::vector<TokenRange>> ranks;  // rising, disjoint
};

/// What a placement is judged by, in any unit of time.
struct PlacementCosts {
  double pair = 1.0;          // one visible (query, key) pair on one rank
  double key_token = 2000.0;  // moving one token's key and value to a rank; default: 8B LLaMA, 400 Gbit/s a device
  double hidden = 0.8;        // share of a rank's attention time under which its transfers can hide
};

/// Throws std::logic_error unless row_tokens is divisible by `ring`.
TokenPlacement place_tokens(const DocumentBorders& documents, std::int64_t ring, Placement kind,
                            const PlacementCosts& costs = {});

/// Position in the row of every token of `rank`, in local order.
std::vector<std::int64_t> token_positions(const TokenPlacement& placement, std::int64_t rank);

}  // namespace reckon
