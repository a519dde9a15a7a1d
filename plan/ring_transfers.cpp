#include "plan/ring_transfers.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "plan/placement_work.h"

namespace reckon {

namespace {

constexpr double kWorthLeavingTheRing = 0.9;

using Segments = std::vector<DocumentSegment>;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/// Tokens of the segment whose offset is at most `last`.
std::int64_t tokens_up_to(const DocumentSegment& segment, std::int64_t last) {
  return std::clamp<std::int64_t>(floor_divide(last - segment.offset, segment.stride) + 1, 0, segment.count);
}

/// What the queries see of `keys` keys of a segment that start at `first_key` of the block; nothing if that is nothing.
/// Segments of one placement have the same stride.
void add_task(const DocumentSegment& queries, const DocumentSegment& key_segment, std::int64_t first_key,
              std::int64_t keys, std::vector<AttentionTask>& tasks) {
  AttentionTask task{queries.local, queries.count, first_key, keys,
                     floor_divide(queries.offset - key_segment.offset, queries.stride)};
  if (task.shift < 0) task.query -= task.shift, task.queries += task.shift, task.shift = 0;  // the first see nothing
  if (task.queries <= 0 || keys <= 0) return;
  task.keys = std::min(keys, task.queries + task.shift);  // no query sees the rest
  if (!tasks.empty() && tasks.back().sees_all() && task.sees_all()) {
    AttentionTask& before = tasks.back();
    const bool same_queries = before.query == task.query && before.queries == task.queries;
    const bool same_keys = before.key == task.key && before.keys == task.keys;
    if (same_queries && before.key + before.keys == task.key) {
      before.keys += task.keys;
      before.shift = before.keys - 1;
      return;
    }
    if (same_keys && before.query + before.queries == task.query) {
      before.queries += task.queries;
      return;
    }
  }
  if (task.sees_all()) task.shift = task.keys - 1;
  tasks.push_back(task);
}

void append(std::vector<LocalRange>& ranges, LocalRange range) {
  if (!ranges.empty() && ranges.back().first + ranges.back().count == range.first) ranges.back().count += range.count;
  else ranges.push_back(range);
}

/// The segments of one document, split by rank.
struct RankRun {
  std::int64_t rank = 0;
  const DocumentSegment* first = nullptr;
  const DocumentSegment* end = nullptr;
  std::int64_t last_offset = 0;

  std::int64_t first_offset() const { return first->offset; }
};

template <class OnDocument>
void for_each_document(const Segments& segments, OnDocument on_document) {
  std::vector<RankRun> runs;
  for (std::size_t i = 0; i < segments.size();) {
    runs.clear();
    const std::int64_t document = segments[i].document;
    for (; i < segments.size() && segments[i].document == document; ++i) {
      if (runs.empty() || runs.back().rank != segments[i].rank)
        runs.push_back({segments[i].rank, &segments[i], nullptr, 0});
      runs.back().end = &segments[i] + 1;
      runs.back().last_offset = segments[i].last();
    }
    on_document(runs);
  }
}

class Builder {
 public:
  Builder(std::int64_t rank, std::int64_t ring, std::int64_t rank_tokens, TransferMode mode)
      : rounds_(static_cast<std::size_t>(ring)), received_(rounds_.size(), 0) {
    plan_.mode = mode;
    plan_.rank = rank;
    plan_.ring = ring;
    plan_.rank_tokens = rank_tokens;
  }

  void add_document(const std::vector<RankRun>& runs) {
    const auto mine =
        std::find_if(runs.begin(), runs.end(), [&](const RankRun& run) { return run.rank == plan_.rank; });
    if (mine == runs.end()) return;
    for (const RankRun& other : runs) {
      if (other.rank == plan_.rank) {
        add_tasks(*mine, other, plan_.own, [](const DocumentSegment& keys) { return keys.local; });
        continue;
      }
      if (other.first_offset() <= mine->last_offset) receive(*mine, other);
      if (mine->first_offset() <= other.last_offset) send(*mine, other);
    }
  }

  RingTransfers finish(std::int64_t ring_distance) {
    for (std::int64_t distance = 1; distance < plan_.ring; ++distance) {
      RingRound& round = rounds_[static_cast<std::size_t>(distance)];
      round.distance = distance;
      if (plan_.mode == TransferMode::ring && distance <= ring_distance) {
        round.from = (plan_.rank + plan_.ring - 1) % plan_.ring;
        round.to = (plan_.rank + 1) % plan_.ring;
        round.receive = round.send = {{0, plan_.rank_tokens}};
      }
      if (round.from >= 0 || round.to >= 0) plan_.rounds.push_back(std::move(round));
    }
    return std::move(plan_);
  }

 private:
  std::size_t distance(std::int64_t later, std::int64_t earlier) const {
    return static_cast<std::size_t>((later - earlier + plan_.ring) % plan_.ring);
  }

  template <class KeyPlace>
  static void add_tasks(const RankRun& queries, const RankRun& keys, std::vector<AttentionTask>& tasks,
                        KeyPlace place) {
    for (const DocumentSegment* query = queries.first; query != queries.end; ++query)
      for (const DocumentSegment* key = keys.first; key != keys.end; ++key)
        add_task(*query, *key, place(*key), tokens_up_to(*key, queries.last_offset), tasks);
  }

  void receive(const RankRun& mine, const RankRun& owner) {
    const std::size_t k = distance(plan_.rank, owner.rank);
    RingRound& round = rounds_[k];
    // The tokens needed of a document are the first of the owner's, which lie side by side.
    const std::int64_t needed = needed_tokens(owner, mine.last_offset);
    append(round.needed, {owner.first->local, needed});
    if (plan_.mode == TransferMode::ring)
      return add_tasks(mine, owner, round.tasks, [](const DocumentSegment& keys) { return keys.local; });
    const std::int64_t arrival = received_[k] - owner.first->local;
    add_tasks(mine, owner, round.tasks, [&](const DocumentSegment& keys) { return arrival + keys.local; });
    round.receive = round.needed;
    received_[k] += needed;
    round.from = owner.rank;
  }

  void send(const RankRun& mine, const RankRun& other) {
    RingRound& round = rounds_[distance(other.rank, plan_.rank)];
    append(round.lent, {mine.first->local, needed_tokens(mine, other.last_offset)});
    if (plan_.mode == TransferMode::ring) return;
    round.send = round.lent;
    round.to = other.rank;
  }

  static std::int64_t needed_tokens(const RankRun& owner, std::int64_t last) {
    std::int64_t tokens = 0;
    for (const DocumentSegment* segment = owner.first; segment != owner.end; ++segment)
      tokens += tokens_up_to(*segment, last);
    return tokens;
  }

  RingTransfers plan_;
  std::vector<RingRound> rounds_;       // by distance
  std::vector<std::int64_t> received_;  // tokens so far, by distance
};

std::int64_t farthest_need(const Segments& segments, std::int64_t ring) {
  std::int64_t farthest = 0;
  for_each_document(segments, [&](const std::vector<RankRun>& runs) {
    for (const RankRun& receiver : runs)
      for (const RankRun& owner : runs)
        if (owner.first_offset() <= receiver.last_offset)
          farthest = std::max(farthest, (receiver.rank - owner.rank + ring) % ring);
  });
  return farthest;
}

std::int64_t sum_of(const std::vector<LocalRange>& ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), std::int64_t{0},
                         [](std::int64_t sum, const LocalRange& range) { return sum + range.count; });
}

}  // namespace

double AttentionTask::pairs() const {
  const std::int64_t partial = std::clamp<std::int64_t>(keys - 1 - shift, 0, queries);  // queries that miss some keys
  const auto p = static_cast<double>(partial);
  return p * static_cast<double>(shift + 1) + p * (p - 1) / 2 +
         static_cast<double>(queries - partial) * static_cast<double>(keys);
}

std::int64_t RingRound::received() const {
  return sum_of(receive);
}

std::int64_t RingRound::sent() const {
  return sum_of(send);
}

std::int64_t RingRound::gradients_sent() const {
  return sum_of(needed);
}

std::int64_t RingRound::gradients_received() const {
  return sum_of(lent);
}

double RingTransfers::pairs() const {
  double sum = 0;
  for (const AttentionTask& task : own) sum += task.pairs();
  for (const RingRound& round : rounds)
    for (const AttentionTask& task : round.tasks) sum += task.pairs();
  return sum;
}

std::int64_t RingTransfers::received() const {
  std::int64_t sum = 0;
  for (const RingRound& round : rounds) sum += round.received();
  return sum;
}

RingSends RingTransfers::sends() const {
  RingSends sum;
  for (const RingRound& round : rounds) {
    sum.tokens += round.sent();
    sum.messages += round.to >= 0;
    sum.gradient_tokens += round.gradients_sent();
    sum.gradient_messages += !round.needed.empty();
  }
  return sum;
}

RingTransfers ring_transfers(const DocumentBorders& documents, const TokenPlacement& placement, std::int64_t rank,
                             TransferMode mode) {
  const auto ring = static_cast<std::int64_t>(placement.ranks.size());
  if (rank < 0 || rank >= ring) throw std::logic_error("a rank outside the ring");
  const Segments segments = document_segments(documents, placement);
  Builder builder(rank, ring, documents.row_tokens / ring, mode);
  for_each_document(segments, [&](const std::vector<RankRun>& runs) { builder.add_document(runs); });
  return builder.finish(mode == TransferMode::ring ? farthest_need(segments, ring) : 0);
}

std::vector<RingSends> ring_sends(const DocumentBorders& documents, const TokenPlacement& placement,
                                  TransferMode mode) {
  const PlacementWork work = placement_work(documents, placement);
  const std::size_t ring = placement.ranks.size();
  const Segments segments = document_segments(documents, placement);
  std::vector<char> needs(ring * ring, 0);  // [receiver * ring + owner]
  for_each_document(segments, [&](const std::vector<RankRun>& runs) {
    for (const RankRun& receiver : runs)
      for (const RankRun& owner : runs)
        if (&owner != &receiver && owner.first_offset() <= receiver.last_offset)
          needs[static_cast<std::size_t>(receiver.rank) * ring + static_cast<std::size_t>(owner.rank)] = 1;
  });
  std::vector<RingSends> sends(ring);
  for (std::size_t rank = 0; rank < ring; ++rank) {
    sends[rank] = {work.sent[rank], 0, work.received[rank], 0};
    for (std::size_t other = 0; other < ring; ++other) {
      sends[rank].messages += needs[other * ring + rank];
      sends[rank].gradient_messages += needs[rank * ring + other];
    }
  }
  if (mode == TransferMode::direct) return sends;
  const std::int64_t rounds = farthest_need(segments, static_cast<std::int64_t>(ring));
  for (RingSends& one : sends) one.tokens = rounds * work.rank_tokens, one.messages = rounds;
  return sends;
}

std::int64_t ring_rounds(const DocumentBorders& documents, const TokenPlacement& placement) {
  return farthest_need(document_segments(documents, placement), static_cast<std::int64_t>(placement.ranks.size()));
}

TransferMode choose_transfer_mode(const DocumentBorders& documents, const TokenPlacement& placement) {
  const PlacementWork work = placement_work(documents, placement);
  std::int64_t busiest = 0;
  for (std::size_t rank = 0; rank < work.sent.size(); ++rank)
    busiest = std::max({busiest, work.sent[rank], work.received[rank]});
  const auto ring = static_cast<double>(ring_rounds(documents, placement) * work.rank_tokens);
  const bool direct = busiest == 0 || static_cast<double>(busiest) < kWorthLeavingTheRing * ring;
  return direct ? TransferMode::direct : TransferMode::ring;
}

}  // namespace reckon
