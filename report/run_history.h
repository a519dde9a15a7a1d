// Many measured runs in the order in which they were made: does the prediction get better?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/step_profile.h"
#include "report/table.h"

namespace reckon {

struct PastRun {
  std::string name, model;
  std::int64_t world_size = 1;
  Seconds predicted, measured;
  std::optional<double> step_error, memory_error;  // (predicted - measured) / measured; memory: the worst stage's peak
  std::string to_blame;                            // the component that adds most to the error of the step time
};

struct RunHistory {
  std::vector<PastRun> runs;                  // oldest first
  double earlier_error = 0, later_error = 0;  // mean |error of the step time| of the older and of the newer half
  bool better() const { return later_error < earlier_error; }
};

/// Throws ConfigError when the profiles are not of the same work.
PastRun past_run(const std::string& name, const StepProfile& predicted, const StepProfile& measured);

/// With an odd number of runs the one in the middle counts as newer. Throws ConfigError for fewer than two runs.
RunHistory run_history(std::vector<PastRun> runs);

/// "the newer 3 runs are off by 4.1 % in step time on average, the older 3 by 7.9 %: the prediction gets better"
std::string history_sentence(const RunHistory& history);

std::string history_text(const RunHistory& history, const TextStyle& style);

/// Schema "reckon.history/1".
std::string history_json(const RunHistory& history);

}  // namespace reckon
