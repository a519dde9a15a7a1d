// Samples all-reduce, all-gather, reduce-scatter, all-to-all and messages over groups of one size, size by size.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "plan/calibration_samples.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/sample_series.h"
#include "runtime/train/sampler.h"

namespace reckon {

class CollectiveSampler : public Sampler {
 public:
  /// `ranks` groups of neighbours of `together`, all at the same time; `ranks` divides its size.
  CollectiveSampler(Communicator& together, int ranks);

  void sample() override;
  void drop_last() override;
  double relative_error() const override;

  /// Seconds of the slowest group. Where the ranks are more than `cores` they take turns, which the time model counts
  /// by itself: the seconds are divided by how many ranks there are for one core.
  std::vector<CollectiveSamples> samples(double cores) const;

 private:
  Communicator& together_;
  std::unique_ptr<Communicator> group_;
  std::map<Collective, std::map<std::int64_t, SampleSeries>> series_;  // by bytes
};

}  // namespace reckon
