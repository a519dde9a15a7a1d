// A whole training run as one rank sees it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "plan/gradient_check.h"
#include "plan/plan.h"
#include "plan/rank_trace.h"
#include "plan/step_profile.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/input/token_stream.h"
#include "runtime/train/train_device.h"

namespace reckon {

/// One line of metrics.jsonl.
struct StepMetrics {
  std::int64_t step = 0;  // from 1
  double loss = 0, gradient_norm = 0, learning_rate = 0;
  double seconds = 0;      // of the slowest rank
  double cpu_seconds = 0;  // of the rank that reports: its own thread's
  double tokens_per_second = 0;
  std::int64_t memory_peak_bytes = 0;  // of the rank that reports
};

struct TrainObserver {
  std::function<void(const std::vector<RankTrace>&)> on_trace = [](const auto&) {};  // rank 0, of the last step
  bool times_ops = true;  // false: the step as a whole only, to measure what timing its parts costs
  std::function<void(const StepMetrics&)> on_step = [](const StepMetrics&) {};  // called on rank 0
  std::function<void()> before_checkpoint = [] {};              // on rank 0: makes durable what on_step has told
  std::function<bool()> stop_requested = [] { return false; };  // any rank's wish ends the run for all
  /// Set on all ranks or on none: called on rank 0 after the last step.
  std::function<void(const GradientCheck&)> on_gradient_check;
};

/// Where a run keeps its state, the same on all ranks.
struct TrainFolders {
  std::filesystem::path checkpoints;  // to save into; empty = nothing is saved
  std::filesystem::path resume;       // a checkpoint to go on from; empty = from the start
};

struct TrainResult {
  StepProfile profile;
  std::int64_t steps = 0;  // made so far, those before a resume included
};

/// Trains up to plan.train.steps steps and returns what was measured, the same on all ranks. Saves a checkpoint every
/// train.checkpoint_every steps and after the last, and whenever a stop is requested. The plan is checked, resolved and
/// executable; the rank's tensors lie on `device`. Throws RunError: loss not finite, memory.limit exceeded (exit code
/// "does not fit"), a group failed, a checkpoint cannot be written; ConfigError: a checkpoint cannot be read.
TrainResult train(const Plan& plan, Communicator& world, const TokenStream& tokens, const TrainObserver& observer,
                  const TrainFolders& folders = {}, TrainDevice device = {});

}  // namespace reckon
