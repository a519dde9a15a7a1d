// What one rank has measured in a run, and how the reports of all ranks become the measured profile.
#pragma once

#include <string>
#include <vector>

#include "plan/step_profile.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/memory_account.h"
#include "runtime/train/rank_trainer.h"

namespace reckon {

struct RankReport {
  std::int64_t rank = 0, stage = 0;
  double waiting = 0;  // median seconds of a step spent waiting for other ranks
  double bubble = 0;   // median seconds of a step spent waiting for other pipeline stages
  double in_flight = 0;
  StageMemory memory;
  std::vector<TimeComponent> time;
  std::vector<TrafficEntry> traffic;  // of one step
};

/// `steps` are this rank's timed steps; traffic is divided by `counted_steps`, the steps since counters were reset.
RankReport rank_report(RankTrainer& trainer, int rank, const MemoryAccount& account,
                       const std::vector<StepTimes>& steps, std::int64_t counted_steps, TrainDevice device = {});

/// Every rank's report on every rank. Collective.
std::vector<RankReport> exchange_reports(Communicator& world, const RankReport& own);

/// What is known of each timed step.
struct TimedSteps {
  std::vector<double> seconds;        // of its slowest rank
  std::vector<double> useful_tokens;  // of all ranks
};

/// FLOP figures are left to the caller.
StepProfile measured_profile(const Plan& plan, const std::vector<RankReport>& reports, const TimedSteps& steps);

}  // namespace reckon
