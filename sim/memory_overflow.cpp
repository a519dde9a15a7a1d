#include "sim/memory_overflow.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "plan/caching_allocator.h"

namespace reckon {
namespace {

/// Puts the timeline through an allocator, which refuses what does not fit.
class AllocatorReplay {
 public:
  AllocatorReplay(bool caching, Bytes limit) : caching_(caching), limit_(limit), allocator_(limit) {}

  bool allocate_always(const BytesByCategory& always) {
    for (const std::int64_t bytes : always)
      if (bytes > 0 && !allocate(-1, bytes)) return false;
    return true;
  }
  bool apply(const MemoryChange& change) {
    if (change.kind == ChangeKind::keep) return true;
    if (change.kind == ChangeKind::allocate) return allocate(change.block, change.bytes);
    allocated_ -= change.bytes;
    if (!caching_) return true;
    allocator_.free(blocks_.at(change.block));
    blocks_.erase(change.block);
    return true;
  }
  Bytes allocated() const { return Bytes(allocated_); }
  Bytes reserved() const { return caching_ ? allocator_.reserved() : Bytes(allocated_); }
  Bytes peak_reserved() const { return caching_ ? allocator_.peak_reserved() : Bytes(peak_); }

 private:
  bool allocate(std::int32_t block, std::int64_t bytes) {
    if (caching_) {
      const auto taken = allocator_.allocate(Bytes(bytes));
      if (!taken) return false;
      if (block >= 0) blocks_[block] = *taken;
    } else if (bytes > limit_.value - allocated_) {
      return false;
    }
    allocated_ += bytes;
    peak_ = std::max(peak_, allocated_);
    return true;
  }

  bool caching_;
  Bytes limit_;
  CachingAllocator allocator_;
  std::unordered_map<std::int32_t, CachingAllocator::Block> blocks_;
  std::int64_t allocated_ = 0, peak_ = 0;
};

}  // namespace

Bytes peak_reserved(const Plan& plan, const MemoryTimeline& timeline) {
  AllocatorReplay replay(!plan.hardware.device.is_cpu, Bytes(std::numeric_limits<std::int64_t>::max()));
  replay.allocate_always(timeline.always);
  for (const MemoryChange& change : timeline.changes) replay.apply(change);
  return replay.peak_reserved();
}

std::optional<RefusedAllocation> first_overflow(const Plan& plan, const MemoryTimeline& timeline, Bytes limit,
                                                Bytes communicators) {
  RefusedAllocation overflow;
  overflow.stage = timeline.stage;
  overflow.rank = timeline.rank;
  overflow.limit = std::max(Bytes(0), limit - communicators);
  overflow.communicators = communicators;
  AllocatorReplay replay(!plan.hardware.device.is_cpu, overflow.limit);
  const auto at_limit = [&] {
    overflow.allocated = replay.allocated();
    overflow.reserved = replay.reserved();
    return overflow;
  };
  if (!replay.allocate_always(timeline.always)) {
    const auto largest = std::max_element(timeline.always.begin(), timeline.always.end());
    overflow.category = static_cast<MemoryCategory>(largest - timeline.always.begin());
    overflow.asked = Bytes(std::accumulate(timeline.always.begin(), timeline.always.end(), std::int64_t{0}));
    return at_limit();
  }
  for (const MemoryChange& change : timeline.changes) {
    if (replay.apply(change)) continue;
    overflow.time = to_seconds(change.time);
    overflow.op = timeline.causes[static_cast<std::size_t>(change.cause)];
    overflow.category = change.category;
    if (change.micro_batch >= 0) overflow.micro_batch = change.micro_batch;
    if (change.layer >= 0) overflow.layer = change.layer;
    overflow.asked = Bytes(change.bytes);
    return at_limit();
  }
  return std::nullopt;
}

}  // namespace reckon
