// Peak memory of one pipeline rank: states, the activations in flight at the worst moment of the schedule, and what
// lives only at that moment (docs/memory.md).
//
// While a chunk runs forward or backward, its earlier sections hold what they keep and the running one is at its own
// worst moment; so the highest moment of a run of equal sections is in its last one. ZeRO-3 holds the gathered weights
// of the running section and of the next (fetched ahead); from ZeRO-2 on, the whole gradient of the running section
// lives until it is reduced.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cost_model/schedule_points.h"
#include "cost_model/section_memory.h"
#include "cost_model/stage_sections.h"
#include "cost_model/state_memory.h"

namespace reckon {

/// Memory and weights of every kind of section at one stage's storage width.
struct SectionTable {
  struct Row {
    SectionMemory memory;
    WeightElements weights;
  };
  std::array<std::array<Row, 2>, 4> rows;  // by Section and `recomputed`

  const Row& operator()(const SectionRun& run) const {
    return rows[static_cast<std::size_t>(run.section)][run.recomputed ? 1 : 0];
  }
};

/// The table of a plan for attention work `work`; `stage` picks the storage widths.
SectionTable section_table(const Plan& plan, const AttentionWork& work, std::int64_t stage);

struct StagePeak {
  StateMemory states;
  Bytes activations, transient, communication;

  Bytes allocated() const { return states.total() + activations + transient + communication; }
};

StagePeak stage_peak(const Plan& plan, const SectionTable& table, std::int64_t stage,
                     const std::vector<ChunkRuns>& chunks, const std::vector<SchedulePoint>& points);

/// Weights of the rank that runs these chunks.
WeightElements stage_weights(const SectionTable& table, const std::vector<ChunkRuns>& chunks);

}  // namespace reckon
