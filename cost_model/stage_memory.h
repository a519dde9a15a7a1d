// Peak memory of one pipeline rank: states, the activations in flight at the worst moment of the schedule, and what
// lives only at that moment (docs/memory.md).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cost_model/schedule_points.h"
#include "cost_model/section_memory.h"
#include "cost_model/stage_states.h"
#include "plan/stage_sections.h"
#include "plan/stage_units.h"

namespace reckon {

/// Memory of every kind of section at one stage's storage width.
struct SectionTable {
  std::array<SectionMemory, kSectionVariants> memory;  // by variant
  std::array<SectionBytes, 4> whole;                   // by Section
};

/// The table of a plan for attention work `work`; `stage` picks the storage widths.
SectionTable section_table(const Plan& plan, const AttentionWork& work, std::int64_t stage);

struct StagePeak {
  StateMemory states;
  Bytes activations, transient, communication;

  Bytes allocated() const { return states.total() + activations + transient + communication; }
};

StagePeak stage_peak(const Plan& plan, const SectionTable& table, std::int64_t stage,
                     const std::vector<ChunkSections>& chunks, const std::vector<SchedulePoint>& points);

}  // namespace reckon
