// A memory timeline put through the allocator: how much it reserves, and where a limit is crossed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"
#include "sim/memory_timeline.h"

namespace reckon {

/// The allocation that does not fit any more.
struct OutOfMemory {
  std::int64_t stage = 0, rank = 0;
  Picoseconds time;
  std::string op;  // "backward.attention"; empty: what lives all the time does not fit
  MemoryCategory category = MemoryCategory::transient;
  std::int64_t micro_batch = -1, layer = kNoLayer;
  Bytes asked, allocated, reserved, limit;  // the limit is for what this process allocates
};

/// Segments of the caching allocator at their highest; on a CPU, which gives back what is freed, plain bytes.
Bytes peak_reserved(const Plan& plan, const MemoryTimeline& timeline);

/// Replays the timeline with `limit` bytes for allocations, of the same kind.
std::optional<OutOfMemory> first_overflow(const Plan& plan, const MemoryTimeline& timeline, Bytes limit);

}  // namespace reckon
