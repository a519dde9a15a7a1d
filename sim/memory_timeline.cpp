#include "sim/memory_timeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

namespace reckon {
namespace {

std::size_t at(MemoryCategory category) {
  return static_cast<std::size_t>(category);
}

std::int64_t total(const BytesByCategory& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

void find_peak(MemoryTimeline& timeline) {
  BytesByCategory now = timeline.always;
  timeline.at_peak = now;
  std::int64_t sum = total(now), peak = sum;
  for (std::size_t i = 0; i < timeline.changes.size(); ++i) {
    const MemoryChange& change = timeline.changes[i];
    apply(change, now);
    sum = total(now);
    const std::int64_t activations = now[at(MemoryCategory::activations)];
    if (sum < peak || (sum == peak && activations <= timeline.at_peak[at(MemoryCategory::activations)])) continue;
    peak = sum;
    timeline.at_peak = now;
    timeline.peak_change = static_cast<std::int32_t>(i);
    timeline.peak_time = change.time;
  }
  timeline.peak = Bytes(peak);
  timeline.left_over = Bytes(sum - total(timeline.always));
}

}  // namespace

MemoryTimeline memory_timeline(const Plan& plan, const PlayedStep& step, std::int64_t stage,
                               const StageMemory& states) {
  MemoryTimeline timeline;
  timeline.stage = stage;
  timeline.rank = step.cluster.ranks[static_cast<std::size_t>(step.rank_of_stage(static_cast<int>(stage)))];
  timeline.always = {states.parameters.value,    states.gradients.value,    states.optimizer.value, 0,
                     constant_bytes(plan).value, states.communication.value};
  static_cast<StageChanges&>(timeline) = replay_stage(plan, step, stage);
  find_peak(timeline);
  return timeline;
}

void apply(const MemoryChange& change, BytesByCategory& bytes) {
  if (change.kind == ChangeKind::keep) bytes[at(MemoryCategory::transient)] -= change.bytes;
  bytes[at(change.category)] += change.kind == ChangeKind::free ? -change.bytes : change.bytes;
}

std::vector<BytesByCategory> bytes_over_time(const MemoryTimeline& timeline) {
  std::vector<BytesByCategory> sums;
  sums.reserve(timeline.changes.size());
  BytesByCategory now = timeline.always;
  for (const MemoryChange& change : timeline.changes) {
    apply(change, now);
    sums.push_back(now);
  }
  return sums;
}

std::vector<LiveBlocks> alive_at_peak(const MemoryTimeline& timeline) {
  std::unordered_map<std::int32_t, const MemoryChange*> alive;
  for (std::int32_t i = 0; i <= timeline.peak_change; ++i) {
    const MemoryChange& change = timeline.changes[static_cast<std::size_t>(i)];
    if (change.kind == ChangeKind::free) alive.erase(change.block);
    else alive[change.block] = &change;
  }
  std::map<std::pair<MemoryCategory, std::int16_t>, std::pair<LiveBlocks, std::set<int>>> groups;
  for (const auto& [block, change] : alive) {
    auto& [row, micro_batches] = groups[{change->category, change->cause}];
    row.category = change->category;
    row.cause = timeline.causes[static_cast<std::size_t>(change->cause)];
    ++row.blocks;
    row.bytes += Bytes(change->bytes);
    micro_batches.insert(change->micro_batch);
    row.micro_batches = static_cast<int>(micro_batches.size());
  }
  std::vector<LiveBlocks> rows;
  for (std::size_t category = 0; category < kMemoryCategories; ++category)
    if (timeline.always[category] > 0)
      rows.push_back({static_cast<MemoryCategory>(category), "always", 1, 0, Bytes(timeline.always[category])});
  for (const auto& [key, group] : groups) rows.push_back(group.first);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const LiveBlocks& a, const LiveBlocks& b) { return a.bytes > b.bytes; });
  return rows;
}

}  // namespace reckon
