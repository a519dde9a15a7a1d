// What a person sees of a running training: a bar that is redrawn on a terminal, a line now and then in a log.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/train/train_run.h"

namespace reckon {

class ProgressDisplay {
 public:
  /// Writes to standard error; `bar`: one line that is redrawn.
  ProgressDisplay(std::int64_t steps, bool bar);
  ~ProgressDisplay();

  void show(const StepMetrics& metrics);

 private:
  bool due(std::int64_t step) const;

  std::int64_t steps_;
  bool bar_;
  bool drawn_ = false;
  double seconds_ = 0;  // of all steps so far
  std::chrono::steady_clock::time_point last_line_{};
};

/// "step 3/20  loss 5.1234  grad norm 1.234  lr 3.0e-04  0.512 s  4000 tokens/s  peak 0.35 GiB"
std::string progress_line(const StepMetrics& metrics, std::int64_t steps);

}  // namespace reckon
