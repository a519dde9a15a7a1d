// Non-negative least squares of relative errors: seconds = sum of coefficient * term, no coefficient below zero, so
// that a prediction is never negative and a small product counts as much as a large one (docs/time.md, Calibration).
#pragma once

#include <vector>

namespace reckon {

/// One measurement: the terms (FLOPs / peak, bytes / bandwidth, 1, ...) and what was measured; both in seconds or in
/// units that the coefficients make seconds.
struct FitSample {
  std::vector<double> terms;
  double seconds = 0;
};

struct RelativeFit {
  std::vector<double> coefficients;  // of all samples
  /// Root mean square of predicted / measured - 1 over the samples kept out, predicted from the others. With fewer than
  /// four samples none is kept out, and it is the error on the samples themselves.
  double relative_error = 0;
  int held_out = 0;
};

/// Coefficients that minimise the sum of (predicted / measured - 1)^2. At most six terms; terms that do not lower the
/// error are zero, earlier terms are preferred. Throws std::invalid_argument without samples.
std::vector<double> fit_coefficients(const std::vector<FitSample>& samples);

/// Fits with a third kept out first, to learn the error, then with all. The third is every third sample in the order of
/// their seconds, from the second on, the largest never: between the others, and the same each time.
RelativeFit fit_relative(std::vector<FitSample> samples);

}  // namespace reckon
