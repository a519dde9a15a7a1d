// One way to share a shape's model out over ranks (pipeline, replicas, ZeRO): what does not depend on schedule, storage
// and recomputation, so that all candidates of a search that share it price it once.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cost_model/overlap_walk.h"
#include "cost_model/stage_states.h"
#include "cost_model/state_times.h"
#include "plan/plan.h"
#include "plan/stage_units.h"

namespace reckon {

/// What a rank holds all the time.
struct RankMemory {
  StateMemory states;
  Bytes buffers;
};

class Sharing {
 public:
  /// `plan` has all degrees and its ZeRO stage, one chunk a stage; `elements` are the section_elements of its degrees.
  Sharing(Plan plan, const SectionElements& elements);

  const Plan& plan() const { return plan_; }
  const StateTimes& times() const { return times_; }
  const OverlapRules& rules() const { return rules_; }
  Bytes communicators() const { return communicators_; }
  /// What a section holds besides the rank's buffers.
  const SectionBytes& whole(Section section) const { return whole_[static_cast<std::size_t>(section)]; }

  /// Of stage `stage` of a plan with `chunks` chunks a stage, which runs so many sections. Valid until the next call.
  const RankMemory& memory(const SectionCounts& counts, std::int64_t chunks, std::int64_t stage);

 private:
  struct Known {
    SectionCounts counts;
    RankMemory memory;
  };

  Plan plan_;
  SectionElements elements_;
  StateTimes times_;
  std::array<SectionBytes, 4> whole_;
  OverlapRules rules_;
  Bytes communicators_;
  std::vector<Known> known_;  // few: stages of a pipeline have one or two more layers, embedding or head
};

}  // namespace reckon
