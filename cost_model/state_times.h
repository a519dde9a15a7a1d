// Seconds of everything that happens to weights and gradients, for one way of sharing them out: by stage for what ends
// a step, by section for what ZeRO-2 and 3 do inside it.
#pragma once

#include <array>
#include <cstdint>

#include "plan/plan.h"
#include "plan/stage_sections.h"

namespace reckon {

struct StateTimes {
  /// First, second and last pipeline stage: those in between are like the second.
  struct Stage {
    double reduce = 0, buckets = 1, optimizer = 0, gather = 0;
  };
  std::array<Stage, 3> stages;
  std::array<double, 4> section_gather{}, section_reduce{};  // by Section; ZeRO-3, ZeRO-2 and 3
  double tied_reduce = 0;
};

/// `plan` has all degrees and its ZeRO stage; `sections` are its section_weights.
StateTimes state_times(const Plan& plan, const SectionWeights& sections);

}  // namespace reckon
