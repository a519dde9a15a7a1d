// Seconds of one optimizer step: the schedule's action lists walked over all pipeline ranks with the delays between
// them, the reduction of gradients behind the last backward actions, then optimizer and gathers.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_model/stage_work.h"
#include "plan/op_times.h"
#include "plan/plan.h"
#include "plan/step_profile.h"

namespace reckon {

struct StepTime {
  Seconds total;
  std::vector<TimeComponent> components;  // of the busiest pipeline rank; exposed seconds sum to `total`
  std::int64_t slowest_stage = 0;
  double bubble_fraction = 0;  // share of the step in which the average stage waits for another
};

StepTime step_time(const Plan& plan, const OpTimes& times);

/// Times at which the pipeline's ranks finish their last action. `forward` and `backward` are [stage][chunk]; edge i is
/// the delay between rank i and i + 1 (the last one back to rank 0). `last_backward` replaces `backward` for the last
/// micro-batch of each chunk.
struct PipelineTimes {
  std::vector<std::vector<Seconds>> forward, backward, last_backward;
  std::vector<Seconds> edges;
};
std::vector<Seconds> pipeline_ends(const Plan& plan, const PipelineTimes& times);

}  // namespace reckon
