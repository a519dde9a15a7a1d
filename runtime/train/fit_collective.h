// Measured collectives -> seconds = alpha + gamma * sqrt(bytes) + bytes / bandwidth.
#pragma once

#include <map>
#include <vector>

#include "plan/hardware_spec.h"
#include "runtime/comm/communicator.h"

namespace reckon {

struct SizedTime {
  double bytes, seconds;
};

/// Non-negative least squares of relative errors; relative_error is their root mean square. At least three sizes.
CollectiveFit fit_collective(Collective collective, int ranks, const std::vector<SizedTime>& samples);

/// Samples all-reduce, all-gather, reduce-scatter, all-to-all and messages over a group, size by size.
class CollectiveSampler {
 public:
  explicit CollectiveSampler(Communicator& group) : group_(group) {}
  void round();
  /// Empty for a single rank.
  std::vector<CollectiveFit> fits() const;

 private:
  Communicator& group_;
  std::map<Collective, std::map<std::int64_t, std::vector<double>>> rounds_;  // by size
};

}  // namespace reckon
