// What one rank of a stage has allocated at every moment of a step: its changes on top of what lives all the time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/memory_category.h"
#include "plan/step_profile.h"
#include "plan/units.h"
#include "sim/stage_replay.h"

namespace reckon {

/// Blocks of one kind that were allocated at the peak.
struct LiveBlocks {
  MemoryCategory category = MemoryCategory::activations;
  std::string cause;
  int blocks = 0, micro_batches = 0;  // how many blocks, of how many different micro-batches
  Bytes bytes;
};

struct MemoryTimeline : StageChanges {
  std::int64_t stage = 0, rank = 0;
  BytesByCategory always{};  // allocated during the whole step
  Picoseconds peak_time;     // of equal peaks the first with most activations
  BytesByCategory at_peak{};
  Bytes peak;
  std::int32_t peak_change = -1;  // index of the change that reached it; -1: the start
  Bytes left_over;                // allocated at the end beyond the start: 0 unless something leaks
};

/// Timeline of `stage`. `states` gives what lives all the time: parameters, gradients, optimizer and communication.
MemoryTimeline memory_timeline(const Plan& plan, const PlayedStep& step, std::int64_t stage, const StageMemory& states);

/// Books one change on the bytes allocated before it.
void apply(const MemoryChange& change, BytesByCategory& bytes);

/// Allocated bytes after each change, by category.
std::vector<BytesByCategory> bytes_over_time(const MemoryTimeline& timeline);

/// What was allocated at the peak, largest first.
std::vector<LiveBlocks> alive_at_peak(const MemoryTimeline& timeline);

}  // namespace reckon
