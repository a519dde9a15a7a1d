// What one pipeline rank does for one micro-batch and chunk: elapsed seconds of its forward and backward action, and
// how they divide into components: sections (section_work.h) one after another, and beside them (docs/time.md)
//  - ZeRO-3 gathers the next section's parameters while one is computed and reduces the previous one's gradients;
//  - without sharded gradients the last micro-batch's backward reduces them in buckets (bucket_walk.h).
// What runs beside a section is walked phase by phase (overlap_walk.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cost_model/section_work.h"
#include "plan/op_times.h"
#include "plan/plan.h"

namespace reckon {

/// Equal neighbours of a chunk.
struct WorkRun {
  const SectionWork* work = nullptr;
  std::int64_t count = 0;
};

struct StageWork {
  std::vector<ActionTime> forward, backward;  // by chunk
  std::vector<std::vector<WorkRun>> chunks;   // their sections in model order, which lie in `sections`
  std::shared_ptr<const std::vector<SectionWork>> sections;
};

/// Work of every pipeline rank. `recompute_layers` of the plan must be resolved.
std::vector<StageWork> stage_works(const Plan& plan, const OpTimes& times);

}  // namespace reckon
