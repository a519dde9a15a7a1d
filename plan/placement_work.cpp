#include "plan/placement_work.h"

#include <algorithm>
#include <numeric>

namespace reckon {

namespace {

/// Sum of (offset + 1) over the segment's tokens: the keys that each of them sees.
double visible_pairs(const DocumentSegment& segment) {
  const auto count = static_cast<double>(segment.count);
  return count * static_cast<double>(segment.offset + 1) +
         static_cast<double>(segment.stride) * count * (count - 1) / 2;
}

/// Walks over the documents of a row and finds, for one after the other, the segments of all ranks.
class DocumentWalk {
 public:
  DocumentWalk(const DocumentBorders& documents, const TokenPlacement& placement)
      : documents_(documents), placement_(placement), cursors_(placement.ranks.size()) {
    for (std::size_t rank = 0; rank < cursors_.size(); ++rank)
      if (!placement.ranks[rank].empty()) cursors_[rank].at = placement.ranks[rank].front().begin;
  }

  /// Fills `segments` with those of the next document, by rank and offset.
  void next(std::vector<DocumentSegment>& segments) {
    segments.clear();
    const std::int64_t start = documents_.starts[static_cast<std::size_t>(document_)];
    const std::int64_t end = documents_.starts[static_cast<std::size_t>(document_) + 1];
    for (std::size_t rank = 0; rank < cursors_.size(); ++rank) {
      const std::vector<TokenRange>& ranges = placement_.ranks[rank];
      Cursor& cursor = cursors_[rank];
      while (cursor.range < ranges.size() && cursor.at < end) {
        const TokenRange& range = ranges[cursor.range];
        const std::int64_t span = std::min(range.end, end) - cursor.at;
        const std::int64_t count = range.stride == 1 ? span : (span + range.stride - 1) / range.stride;
        segments.push_back(
            {document_, static_cast<std::int64_t>(rank), cursor.at - start, count, range.stride, cursor.local});
        cursor.local += count;
        cursor.at += count * range.stride;
        if (cursor.at < range.end) break;
        if (++cursor.range < ranges.size()) cursor.at = ranges[cursor.range].begin;
      }
    }
    ++document_;
  }

 private:
  struct Cursor {
    std::size_t range = 0;
    std::int64_t at = 0, local = 0;  // next position, and its index among the rank's tokens
  };
  const DocumentBorders& documents_;
  const TokenPlacement& placement_;
  std::vector<Cursor> cursors_;
  std::int64_t document_ = 0;
};

struct RankShare {
  std::int64_t rank = 0, tokens = 0, last = 0;  // tokens of the document on the rank, offset of the last
};

/// Tokens of `segment` that other ranks need: those up to each rank's last query. `lasts` are sorted, the owner's own
/// among them and not before the segment's last token.
std::int64_t needed_elsewhere(const DocumentSegment& segment, const std::vector<std::int64_t>& lasts) {
  const auto beyond = std::lower_bound(lasts.begin(), lasts.end(), segment.last());
  std::int64_t needed = segment.count * (lasts.end() - beyond - 1);
  if (segment.stride == 1) return needed;  // no other rank's token lies inside
  const auto one_less = std::lower_bound(lasts.begin(), beyond, segment.last() - segment.stride);
  needed += (segment.count - 1) * (beyond - one_less);
  for (auto inside = one_less; inside != lasts.begin() && *(inside - 1) >= segment.offset; --inside)
    needed += (*(inside - 1) - segment.offset) / segment.stride + 1;
  return needed;
}

/// Adds what one document costs.
void add_document(const std::vector<DocumentSegment>& segments, PlacementWork& work, std::vector<RankShare>& shares,
                  std::vector<std::int64_t>& lasts) {
  shares.clear(), lasts.clear();
  for (const DocumentSegment& segment : segments) {
    work.pairs[static_cast<std::size_t>(segment.rank)] += visible_pairs(segment);
    if (shares.empty() || shares.back().rank != segment.rank) shares.push_back({segment.rank, 0, 0});
    shares.back().tokens += segment.count;
    shares.back().last = std::max(shares.back().last, segment.last());
  }
  if (shares.size() == 1) return;
  for (const RankShare& share : shares) {
    work.received[static_cast<std::size_t>(share.rank)] += share.last + 1 - share.tokens;
    lasts.push_back(share.last);
  }
  std::sort(lasts.begin(), lasts.end());
  for (const DocumentSegment& segment : segments)
    work.sent[static_cast<std::size_t>(segment.rank)] += needed_elsewhere(segment, lasts);
}

}  // namespace

std::vector<DocumentSegment> document_segments(const DocumentBorders& documents, const TokenPlacement& placement) {
  std::vector<DocumentSegment> all, segments;
  DocumentWalk walk(documents, placement);
  for (std::int64_t document = 0; document < documents.documents(); ++document) {
    walk.next(segments);
    all.insert(all.end(), segments.begin(), segments.end());
  }
  return all;
}

PlacementWork placement_work(const DocumentBorders& documents, const TokenPlacement& placement) {
  const std::size_t ring = placement.ranks.size();
  PlacementWork work{std::vector<double>(ring, 0.0), std::vector<std::int64_t>(ring, 0),
                     std::vector<std::int64_t>(ring, 0), documents.row_tokens / static_cast<std::int64_t>(ring)};
  DocumentWalk walk(documents, placement);
  std::vector<DocumentSegment> segments;
  std::vector<RankShare> shares;
  std::vector<std::int64_t> lasts;
  for (std::int64_t document = 0; document < documents.documents(); ++document) {
    walk.next(segments);
    add_document(segments, work, shares, lasts);
  }
  return work;
}

double PlacementWork::total_pairs() const {
  return std::accumulate(pairs.begin(), pairs.end(), 0.0);
}

double PlacementWork::imbalance() const {
  const double total = total_pairs();
  if (total == 0) return 1.0;
  return *std::max_element(pairs.begin(), pairs.end()) / (total / static_cast<double>(pairs.size()));
}

double PlacementWork::key_blocks_mean() const {
  const auto sum = static_cast<double>(std::accumulate(received.begin(), received.end(), std::int64_t{0}));
  return sum / static_cast<double>(received.size()) / static_cast<double>(rank_tokens);
}

double PlacementWork::key_blocks_max() const {
  return static_cast<double>(*std::max_element(received.begin(), received.end())) / static_cast<double>(rank_tokens);
}

double predicted_cost(const PlacementWork& work, const PlacementCosts& costs) {
  double worst = 0;
  for (std::size_t rank = 0; rank < work.pairs.size(); ++rank) {
    const double attention = costs.pair * work.pairs[rank];
    const double transfer = costs.key_token * static_cast<double>(std::max(work.received[rank], work.sent[rank]));
    worst = std::max(worst, attention + std::max(0.0, transfer - costs.hidden * attention));
  }
  return worst;
}

}  // namespace reckon
