// Times of a plan's attention as one of its ranks computes it, in full-length rows with its own heads and the plan's
// own documents, without messages: also where too few ranks measure to split the rows as the plan does.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "plan/calibration_samples.h"
#include "plan/ring_transfers.h"
#include "runtime/train/sample_series.h"
#include "runtime/train/sampler.h"

namespace reckon {

class AttentionSampler : public Sampler {
 public:
  /// Takes the rows of a priced step (step_documents.h) whose pairs are nearest to the median, and of each the ring
  /// rank with the most pairs. The plan is executable; `ranks` compute at the same time.
  AttentionSampler(const Plan& plan, std::int64_t ranks);

  void sample() override;
  void drop_last() override;
  double relative_error() const override;

  /// Medians, for the pairs of the plan's op.
  AttentionSample result() const;

 private:
  void forward();
  void backward();

  Op op_;
  std::int64_t ranks_;
  NumberFormat format_;
  std::vector<RingTransfers> rows_;
  double pairs_ = 0;  // of rows_
  at::Tensor qkv_, output_, log_sum_exp_, gradient_, delta_, sums_;
  SampleSeries forward_, backward_;
};

}  // namespace reckon
