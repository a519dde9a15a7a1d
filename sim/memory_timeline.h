// What one rank of a stage has allocated at every moment of a step: the allocations and frees of plan/memory_events.h
// at the times at which the simulated ops ran, on top of what lives all the time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/memory_category.h"
#include "plan/step_profile.h"
#include "plan/units.h"
#include "sim/played_step.h"

namespace reckon {

/// One block allocated or freed.
struct MemoryChange {
  Picoseconds time;
  std::int32_t block = 0;  // unique in the stage
  std::int64_t bytes = 0;
  bool allocates = true;
  MemoryCategory category = MemoryCategory::transient;
  std::int16_t cause = 0;  // index into MemoryTimeline::causes: the op that asks for it, "forward.qkv"
  std::int32_t micro_batch = -1, chunk = -1;
  std::int64_t layer = kNoLayer;
};

/// Blocks of one kind that were allocated at the peak.
struct LiveBlocks {
  MemoryCategory category = MemoryCategory::activations;
  std::string cause;
  int blocks = 0, micro_batches = 0;  // how many blocks, of how many different micro-batches
  Bytes bytes;
};

struct MemoryTimeline {
  std::int64_t stage = 0, rank = 0;
  BytesByCategory always{};  // allocated during the whole step
  std::vector<std::string> causes;
  std::vector<MemoryChange> changes;  // in order
  Picoseconds peak_time;
  BytesByCategory at_peak{};
  Bytes peak;
  std::int32_t peak_change = -1;  // index of the change that reached it; -1: the start
  Bytes peak_reserved;            // by the caching allocator's replay; the peak itself on a CPU
  Bytes left_over;                // allocated at the end beyond the start: 0 unless something leaks
};

/// The allocation that does not fit any more.
struct OutOfMemory {
  std::int64_t stage = 0, rank = 0;
  Picoseconds time;
  std::string op;  // "backward.attention"; empty: what lives all the time does not fit
  MemoryCategory category = MemoryCategory::transient;
  std::int64_t micro_batch = -1, layer = kNoLayer;
  Bytes asked, allocated, reserved, limit;  // the limit is for what this process allocates
};

/// Timeline of `stage`. `states` gives what lives all the time: parameters, gradients, optimizer and communication.
MemoryTimeline memory_timeline(const Plan& plan, const PlayedStep& step, std::int64_t stage, const StageMemory& states);

/// Allocated bytes after each change: cumulative sums of the timeline, by category.
std::vector<BytesByCategory> bytes_over_time(const MemoryTimeline& timeline);

/// What was allocated at the peak, largest first.
std::vector<LiveBlocks> alive_at_peak(const MemoryTimeline& timeline);

/// Replays the timeline with `limit` bytes for allocations (segments of the caching allocator, or plain bytes on a
/// CPU).
std::optional<OutOfMemory> first_overflow(const Plan& plan, const MemoryTimeline& timeline, Bytes limit);

}  // namespace reckon
