// Order statistics of small samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace reckon {

/// Linear interpolation between order statistics; `fraction` 0.5 is the median. 0 for an empty sample.
inline double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
}

inline double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

/// Half the interquartile range.
inline double spread(const std::vector<double>& values) {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / 2;
}

}  // namespace reckon
