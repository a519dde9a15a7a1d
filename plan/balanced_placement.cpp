#include "plan/balanced_placement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "plan/placement_work.h"

namespace reckon {

namespace {

/// How far above the mean a rank may get before a document is cut further.
constexpr double kSlacks[] = {0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5, 8, 1e9};

double causal_pairs(std::int64_t tokens) {
  const auto l = static_cast<double>(tokens);
  return l * (l + 1) / 2;
}

/// Pairs of a run of tokens from `offset` on.
double run_pairs(std::int64_t offset, std::int64_t tokens) {
  return causal_pairs(offset + tokens) - causal_pairs(offset);
}

struct Rank {
  double pairs = 0;
  std::int64_t room = 0;
  std::vector<TokenRange> ranges;
};

/// Over how many ranks each of the longest documents is cut so that none gets more than (1 + slack) times the mean
/// pairs; ends before the first that stays whole.
std::vector<std::int64_t> parts_of_longest(const DocumentBorders& documents, const std::vector<std::int64_t>& order,
                                           std::int64_t ring, double slack) {
  double total = 0;
  for (const std::int64_t document : order) total += causal_pairs(documents.length(document));
  const double most_pairs = std::max(1.0, (1 + slack) * total / static_cast<double>(ring));
  std::vector<std::int64_t> parts;
  for (const std::int64_t document : order) {
    const double wanted = std::ceil(causal_pairs(documents.length(document)) / most_pairs);
    if (wanted <= 1) break;
    parts.push_back(std::min(ring, static_cast<std::int64_t>(std::min(wanted, 1e6))));
  }
  return parts;
}

class Filling {
 public:
  Filling(const DocumentBorders& documents, std::int64_t ring)
      : documents_(documents), ranks_(static_cast<std::size_t>(ring)) {
    for (Rank& rank : ranks_) rank.room = documents.row_tokens / ring;
  }

  /// `parts` belongs to the first documents of `order`; the others stay whole where there is room.
  TokenPlacement fill(const std::vector<std::int64_t>& order, const std::vector<std::int64_t>& parts) {
    for (std::size_t i = 0; i < order.size(); ++i) place(order[i], i < parts.size() ? parts[i] : 1);
    run_into_rooms(documents_.starts.back(), documents_.row_tokens, 0.0);  // padding
    TokenPlacement placement{Placement::balanced, {}};
    for (Rank& rank : ranks_) placement.ranks.push_back(joined(std::move(rank.ranges)));
    return placement;
  }

 private:
  /// In a zigzag over `parts` ranks, or as many more as it takes to find room, else into what room there is.
  void place(std::int64_t document, std::int64_t parts) {
    const std::int64_t begin = documents_.starts[static_cast<std::size_t>(document)],
                       length = documents_.length(document);
    const auto ring = static_cast<std::int64_t>(ranks_.size());
    if (parts == 1) {
      const std::size_t rank = lightest_with_room(length);
      if (rank < ranks_.size()) return put(rank, begin, begin + length, causal_pairs(length));
      parts = 2;
    }
    for (; parts <= ring; ++parts) {
      const std::vector<std::size_t> chosen = lightest((length + parts - 1) / parts, static_cast<std::size_t>(parts));
      if (!chosen.empty()) return put_zigzag(chosen, begin, length);
    }
    run_into_rooms(begin, begin + length, 1.0);
  }

  std::size_t lightest_with_room(std::int64_t tokens) const {
    std::size_t found = ranks_.size();
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (ranks_[i].room >= tokens && (found == ranks_.size() || ranks_[i].pairs < ranks_[found].pairs)) found = i;
    return found;
  }

  /// The `count` ranks with the fewest pairs that have room for `tokens`; empty when there are not as many.
  std::vector<std::size_t> lightest(std::int64_t tokens, std::size_t count) const {
    std::vector<std::size_t> able;
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (ranks_[i].room >= tokens) able.push_back(i);
    if (able.size() < count) return {};
    const auto lighter = [&](std::size_t a, std::size_t b) {
      return ranks_[a].pairs != ranks_[b].pairs ? ranks_[a].pairs < ranks_[b].pairs : a < b;
    };
    std::partial_sort(able.begin(), able.begin() + static_cast<std::ptrdiff_t>(count), able.end(), lighter);
    able.resize(count);
    return able;
  }

  void put(std::size_t rank, std::int64_t begin, std::int64_t end, double pairs) {
    if (begin >= end) return;
    ranks_[rank].ranges.push_back({begin, end, 1});
    ranks_[rank].room -= end - begin;
    ranks_[rank].pairs += pairs;
  }

  /// 2 * parts chunks; a part takes a low and the mirrored high one, so that all do about the same work.
  void put_zigzag(const std::vector<std::size_t>& chosen, std::int64_t begin, std::int64_t length) {
    const auto parts = static_cast<std::int64_t>(chosen.size());
    const auto tokens_of = [&](std::int64_t part) { return length / parts + (part < length % parts ? 1 : 0); };
    std::int64_t at = 0;
    const auto take = [&](std::int64_t part, std::int64_t tokens) {
      put(chosen[static_cast<std::size_t>(part)], begin + at, begin + at + tokens, run_pairs(at, tokens));
      at += tokens;
    };
    for (std::int64_t part = 0; part < parts; ++part) take(part, tokens_of(part) / 2);
    for (std::int64_t part = parts; part-- > 0;) take(part, tokens_of(part) - tokens_of(part) / 2);
  }

  /// Fills the roomiest ranks one after the other. `weight` is 0 for padding, which has no pairs.
  void run_into_rooms(std::int64_t begin, std::int64_t end, double weight) {
    for (std::int64_t at = begin; at < end;) {
      std::size_t roomiest = 0;
      for (std::size_t i = 1; i < ranks_.size(); ++i)
        if (ranks_[i].room > ranks_[roomiest].room) roomiest = i;
      const std::int64_t tokens = std::min(end - at, ranks_[roomiest].room);
      put(roomiest, at, at + tokens, weight * run_pairs(at - begin, tokens));
      at += tokens;
    }
  }

  static std::vector<TokenRange> joined(std::vector<TokenRange> ranges) {
    std::sort(ranges.begin(), ranges.end(), [](const TokenRange& a, const TokenRange& b) { return a.begin < b.begin; });
    std::vector<TokenRange> result;
    for (const TokenRange& range : ranges) {
      if (!result.empty() && result.back().end == range.begin) result.back().end = range.end;
      else result.push_back(range);
    }
    return result;
  }

  const DocumentBorders& documents_;
  std::vector<Rank> ranks_;
};

/// What zigzag per document and striping cost at least: rank 0 holds a token among the last `ring` of every document of
/// two tokens a rank or more, so it needs nearly all of it. Saves walking over their many pieces.
double least_cost_of_spreading(const DocumentBorders& documents, std::int64_t ring, const PlacementCosts& costs) {
  double pairs = 0, received = 0;
  for (std::int64_t i = 0; i < documents.documents(); ++i) {
    const std::int64_t length = documents.length(i);
    pairs += causal_pairs(length);
    const std::int64_t own = (length + ring - 1) / ring;
    if (length >= 2 * ring) received += static_cast<double>(length - ring + 1 - own);
  }
  return std::max(costs.pair * pairs / static_cast<double>(ring), costs.key_token * received);
}

std::vector<std::int64_t> longest_first(const DocumentBorders& documents) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(documents.documents()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return documents.length(a) > documents.length(b); });
  return order;
}

}  // namespace

TokenPlacement balanced_placement(const DocumentBorders& documents, std::int64_t ring, const PlacementCosts& costs) {
  std::optional<TokenPlacement> best;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](TokenPlacement candidate) {
    const double cost = predicted_cost(placement_work(documents, candidate), costs);
    if (cost < least) least = cost, best = std::move(candidate);
  };
  consider(place_tokens(documents, ring, Placement::contiguous));
  consider(place_tokens(documents, ring, Placement::zigzag));
  const std::vector<std::int64_t> order = longest_first(documents);
  std::vector<std::int64_t> before = {-1};
  for (const double slack : kSlacks) {
    std::vector<std::int64_t> parts = parts_of_longest(documents, order, ring, slack);
    if (parts != before) consider(Filling(documents, ring).fill(order, parts));
    before = std::move(parts);
  }
  for (const Placement spread : {Placement::zigzag_per_document, Placement::striped})
    if (least_cost_of_spreading(documents, ring, costs) < least) consider(place_tokens(documents, ring, spread));
  return *best;
}

}  // namespace reckon
