// A memory timeline put through the allocator: how much it reserves, and where a limit is crossed.
#pragma once

#include <optional>

#include "plan/plan.h"
#include "plan/simulation_details.h"
#include "sim/memory_timeline.h"

namespace reckon {

/// Segments of the caching allocator at their highest; on a CPU, which gives back what is freed, plain bytes.
Bytes peak_reserved(const Plan& plan, const MemoryTimeline& timeline);

/// Replays the timeline, of the same kind, with what `communicators` leave of `limit`.
std::optional<RefusedAllocation> first_overflow(const Plan& plan, const MemoryTimeline& timeline, Bytes limit,
                                                Bytes communicators);

}  // namespace reckon
