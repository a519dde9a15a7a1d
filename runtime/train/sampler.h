// What a calibration visits in every round.
#pragma once

namespace reckon {

class Sampler {
 public:
  Sampler() = default;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  virtual ~Sampler() = default;

  /// Measures once more; every rank of the sampler's group calls it.
  virtual void sample() = 0;
  /// Forgets the last `sample`.
  virtual void drop_last() = 0;
  /// Standard error of what it measures, as a share; on this rank.
  virtual double relative_error() const = 0;
};

}  // namespace reckon
