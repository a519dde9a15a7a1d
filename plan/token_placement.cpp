#include "plan/token_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "plan/balanced_placement.h"
#include "plan/placement_work.h"

namespace reckon {

namespace {

using Ranges = std::vector<TokenRange>;

/// Appends [begin, end), joined with the range before it when they touch.
void append(Ranges& ranges, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  if (!ranges.empty() && ranges.back().stride == 1 && ranges.back().end == begin) ranges.back().end = end;
  else ranges.push_back({begin, end, 1});
}

std::vector<Ranges> contiguous(std::int64_t tokens, std::int64_t ring) {
  std::vector<Ranges> ranks(static_cast<std::size_t>(ring));
  const std::int64_t own = tokens / ring;
  for (std::int64_t rank = 0; rank < ring; ++rank)
    ranks[static_cast<std::size_t>(rank)].push_back({rank * own, (rank + 1) * own, 1});
  return ranks;
}

/// Deals [begin, ...) out as 2 * ring chunks; rank r takes chunk r and chunk 2 * ring - 1 - r, `tokens_of` in sum.
void deal_zigzag(std::vector<Ranges>& ranks, std::int64_t begin, const std::vector<std::int64_t>& tokens_of) {
  const std::size_t ring = ranks.size();
  for (std::size_t rank = 0; rank < ring; ++rank) {
    const std::int64_t low = tokens_of[rank] / 2;
    append(ranks[rank], begin, begin + low);
    begin += low;
  }
  for (std::size_t rank = ring; rank-- > 0;) {
    const std::int64_t high = tokens_of[rank] - tokens_of[rank] / 2;
    append(ranks[rank], begin, begin + high);
    begin += high;
  }
}

std::vector<Ranges> zigzag(std::int64_t tokens, std::int64_t ring) {
  std::vector<Ranges> ranks(static_cast<std::size_t>(ring));
  deal_zigzag(ranks, 0, std::vector<std::int64_t>(ranks.size(), tokens / ring));
  return ranks;
}

/// Every document, and the padding, in a zigzag of its own. What a length leaves over after division by the ring goes
/// to ranks in turn, so that all hold equally many tokens at the end.
std::vector<Ranges> zigzag_per_document(const DocumentBorders& documents, std::int64_t ring) {
  std::vector<Ranges> ranks(static_cast<std::size_t>(ring));
  std::vector<std::int64_t> borders = documents.starts;
  if (borders.back() < documents.row_tokens) borders.push_back(documents.row_tokens);
  std::size_t turn = 0;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    const std::int64_t length = borders[i + 1] - borders[i];
    std::vector<std::int64_t> tokens_of(ranks.size(), length / ring);
    for (std::int64_t over = length % ring; over > 0; --over, turn = (turn + 1) % ranks.size()) ++tokens_of[turn];
    deal_zigzag(ranks, borders[i], tokens_of);
  }
  return ranks;
}

std::vector<Ranges> striped(std::int64_t tokens, std::int64_t ring) {
  std::vector<Ranges> ranks;
  for (std::int64_t rank = 0; rank < ring; ++rank) ranks.push_back({{rank, tokens, ring}});
  return ranks;
}

TokenPlacement cheapest(const DocumentBorders& documents, std::int64_t ring, const PlacementCosts& costs) {
  if (ring == 1) return {Placement::contiguous, contiguous(documents.row_tokens, 1)};
  return balanced_placement(documents, ring, costs);
}

}  // namespace

DocumentBorders document_borders(std::span<const std::int64_t> lengths, std::int64_t row_tokens) {
  DocumentBorders documents{{0}, row_tokens};
  for (const std::int64_t length : lengths) {
    if (length < 1) throw std::logic_error("a document without tokens in a row");
    documents.starts.push_back(documents.starts.back() + length);
  }
  if (documents.starts.back() > row_tokens)
    throw std::logic_error(fmt::format("documents of {} tokens in a row of {}", documents.starts.back(), row_tokens));
  return documents;
}

DocumentBorders attention_borders(std::span<const std::int64_t> lengths, std::int64_t row_tokens,
                                  AttentionScope scope) {
  if (scope == AttentionScope::per_document) return document_borders(lengths, row_tokens);
  return document_borders(std::vector<std::int64_t>{row_tokens}, row_tokens);
}

TokenPlacement place_tokens(const DocumentBorders& documents, std::int64_t ring, Placement kind,
                            const PlacementCosts& costs) {
  const std::int64_t tokens = documents.row_tokens;
  if (ring < 1 || tokens % ring != 0)
    throw std::logic_error(fmt::format("a row of {} tokens on {} ring ranks", tokens, ring));
  switch (kind) {
    case Placement::contiguous: return {kind, contiguous(tokens, ring)};
    case Placement::zigzag: return {kind, zigzag(tokens, ring)};
    case Placement::zigzag_per_document: return {kind, zigzag_per_document(documents, ring)};
    case Placement::striped: return {kind, striped(tokens, ring)};
    case Placement::balanced: return {kind, cheapest(documents, ring, costs).ranks};
    case Placement::automatic: return cheapest(documents, ring, costs);
  }
  throw std::logic_error("unknown placement");
}

std::vector<std::int64_t> token_positions(const TokenPlacement& placement, std::int64_t rank) {
  std::vector<std::int64_t> positions;
  for (const TokenRange& range : placement.ranks.at(static_cast<std::size_t>(rank)))
    for (std::int64_t at = range.begin; at < range.end; at += range.stride) positions.push_back(at);
  return positions;
}

}  // namespace reckon
