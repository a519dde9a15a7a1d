// Which sections one pipeline rank runs: per chunk, in model order, equal neighbours counted together. Memory of stages
// and its replay walk this.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/layer_ops.h"
#include "plan/plan.h"

namespace reckon {

struct SectionRun {
  Section section = Section::dense_layer;
  bool recomputed = false;  // in the plan's recompute mode; else nothing is recomputed beyond the class policies
  std::int64_t count = 0;
};

using ChunkRuns = std::vector<SectionRun>;

/// Runs of every chunk of rank `stage`. The first `recompute_layers` layers of a stage are recomputed.
std::vector<ChunkRuns> stage_runs(const Plan& plan, std::int64_t stage);

/// Layers of the stage that are recomputed: its entry of `recompute_layers`, at most its layers; 0 in mode none and
/// where the list is empty (auto, before resolving).
std::int64_t recomputed_layers(const Plan& plan, std::int64_t stage);
std::int64_t stage_layers(const Plan& plan, std::int64_t stage);

}  // namespace reckon
