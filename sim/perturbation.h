// Random and systematic deviations of work durations, reproducible from a seed: a factor depends only on seed, rank and
// task, not on the order in which the tasks run.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace reckon {

class Perturbation {
 public:
  /// No deviation: every factor is 1.
  Perturbation() = default;
  /// Log-normal factors of mean 1 and coefficient of variation `jitter` (0: none), times the rank's factor in
  /// `slow_ranks`.
  Perturbation(std::uint64_t seed, double jitter, const std::map<std::int64_t, double>& slow_ranks, int ranks);

  bool is_none() const { return rank_factors_.empty(); }
  double factor(int rank, int stream, std::int64_t task) const;

 private:
  std::uint64_t seed_ = 0;
  std::vector<double> rank_factors_;  // empty: none
  std::vector<double> quantiles_;     // of the log-normal distribution; empty without jitter
};

}  // namespace reckon
