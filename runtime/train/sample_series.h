// One measured quantity over the rounds of a calibration.
#pragma once

#include <cmath>
#include <vector>

#include "runtime/train/statistics.h"

namespace reckon {

class SampleSeries {
 public:
  void add(double seconds) { values_.push_back(seconds); }
  void drop(std::size_t count) { values_.resize(values_.size() - count); }
  std::size_t count() const { return values_.size(); }

  double result() const { return median(values_); }

  /// Standard error of the median over the median, from the spread of the values (normal distribution: half the
  /// interquartile range is 0.6745 sigma, the median's error 1.2533 sigma / sqrt(n)).
  double relative_error() const {
    if (values_.size() < 3 || result() <= 0.0) return INFINITY;
    return 1.2533 * spread(values_) / 0.6745 / std::sqrt(static_cast<double>(values_.size())) / result();
  }

 private:
  std::vector<double> values_;
};

}  // namespace reckon
