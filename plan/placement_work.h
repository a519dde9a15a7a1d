// What a placement costs: visible pairs of every rank, and the keys and values that it needs from others. A query sees
// the keys of its own document up to its own position (methods: causal attention inside documents).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/token_placement.h"

namespace reckon {

/// Tokens of one document that one rank holds at equal distances.
struct DocumentSegment {
  std::int64_t document = 0, rank = 0;
  std::int64_t offset = 0;  // of the first token, from the document's start
  std::int64_t count = 0, stride = 1;
  std::int64_t local = 0;  // index of the first token among the rank's tokens; the others follow it

  std::int64_t last() const { return offset + (count - 1) * stride; }
};

/// All segments, by document, then rank, then offset. Padding has none.
std::vector<DocumentSegment> document_segments(const DocumentBorders& documents, const TokenPlacement& placement);

struct PlacementWork {
  std::vector<double> pairs;           // by rank
  std::vector<std::int64_t> received;  // tokens whose keys and values a rank needs and does not hold
  std::vector<std::int64_t> sent;      // tokens a rank sends, counted once for every rank that needs them
  std::int64_t rank_tokens = 0;        // tokens each rank holds

  double total_pairs() const;
  /// Pairs of the worst rank / mean; 1 without any pair.
  double imbalance() const;
  /// Received tokens in units of a rank's own tokens.
  double key_blocks_mean() const;
  double key_blocks_max() const;
};

PlacementWork placement_work(const DocumentBorders& documents, const TokenPlacement& placement);

/// Largest over the ranks of attention plus exposed transfer: pair * pairs + max(0, key_token * max(received, sent) -
/// hidden * pair * pairs).
double predicted_cost(const PlacementWork& work, const PlacementCosts& costs);

}  // namespace reckon
