// Seconds of one optimizer step: the schedule's action lists walked over all pipeline ranks with the delays between
// them, the reduction of gradients behind the last backward actions, then optimizer and gathers.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/op_times.h"
#include "plan/pipeline_schedule.h"
#include "plan/plan.h"
#include "plan/step_profile.h"

namespace reckon {

struct StepTime {
  Seconds total;
  std::vector<TimeComponent> components;  // of the busiest pipeline rank; exposed seconds sum to `total`
  double bubble_fraction = 0;             // share of the step in which the average stage waits for another
};

StepTime step_time(const Plan& plan, const OpTimes& times);

/// Ranks that compute or move bytes at a time, on average over the step.
double busy_ranks(const Plan& plan, const OpTimes& times);

/// Duration of an action of `stage` that begins `idle` after the stage's action before it. Called once for each action,
/// in the order of each stage's list.
using ActionDuration = std::function<Seconds(std::int64_t stage, const Action& action, Seconds idle)>;

/// Times at which the pipeline's ranks finish their last action. Edge i is the delay between rank i and i + 1 (the last
/// one back to rank 0).
std::vector<Seconds> pipeline_ends(const Plan& plan, const std::vector<Seconds>& edges, const ActionDuration& duration);

}  // namespace reckon
