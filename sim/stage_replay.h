// The allocations and frees of one stage in a step: those of plan/memory_events.h, action by action, at the times at
// which the simulated ops ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/memory_category.h"
#include "plan/plan.h"
#include "sim/played_step.h"

namespace reckon {

enum class ChangeKind : std::uint8_t {
  allocate,
  free,
  keep,  // a transient block becomes an activation: the section that begins keeps it for its backward
};

struct MemoryChange {
  Picoseconds time;
  std::int32_t block = 0;  // unique in the stage
  std::int64_t bytes = 0;
  ChangeKind kind = ChangeKind::allocate;
  MemoryCategory category = MemoryCategory::transient;  // after the change
  std::int16_t cause = 0;                               // index into causes: the op that asks for it, "forward.qkv"
  std::int32_t micro_batch = -1, chunk = -1;
  std::int64_t layer = kNoLayer;
};

struct StageChanges {
  std::vector<std::string> causes;
  std::vector<MemoryChange> changes;  // in order
};

StageChanges replay_stage(const Plan& plan, const PlayedStep& step, std::int64_t stage);

}  // namespace reckon
