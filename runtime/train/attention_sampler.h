// Times of a plan's attention as one of its ranks computes it, in full-length rows with its own heads and the plan's
// own documents, without messages: also where too few ranks measure to split the rows as the plan does.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "plan/plan.h"
#include "plan/ring_transfers.h"
#include "runtime/train/calibration_run.h"

namespace reckon {

class AttentionSampler {
 public:
  /// Takes the rows of a priced step (step_documents.h) whose pairs are nearest to the median, and of each the ring
  /// rank with the most pairs. The plan is executable.
  explicit AttentionSampler(const Plan& plan);

  void round();
  /// Median over rounds, for the pairs of the plan's op.
  AttentionSample result() const;

 private:
  void forward();
  void backward();

  Op op_;
  NumberFormat format_;
  std::vector<RingTransfers> rows_;
  double pairs_ = 0;  // of rows_
  at::Tensor qkv_, output_, log_sum_exp_, gradient_, delta_, sums_;
  std::vector<double> forward_rounds_, backward_rounds_;
};

}  // namespace reckon
