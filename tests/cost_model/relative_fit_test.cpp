#include "cost_model/relative_fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace reckon {
namespace {

std::vector<FitSample> line(double slope, double constant, const std::vector<double>& sizes) {
  std::vector<FitSample> samples;
  for (const double size : sizes) samples.push_back({{size, 1.0}, slope * size + constant});
  return samples;
}

TEST(RelativeFit, ExactDataGivesItsCoefficients) {
  const RelativeFit fit = fit_relative(line(3.0, 0.5, {1, 2, 4, 8, 16, 32}));
  EXPECT_NEAR(fit.coefficients[0], 3.0, 1e-12);
  EXPECT_NEAR(fit.coefficients[1], 0.5, 1e-12);
  EXPECT_NEAR(fit.relative_error, 0.0, 1e-12);
  EXPECT_EQ(fit.held_out, 2);  // of six, the second and the fifth
}

TEST(RelativeFit, NoCoefficientIsNegative) {
  // 2 x - 1 through 1, 2, 4: the best line has a constant of -1. Without it, the slope s minimises
  // (s/1 - 1)^2 + (2s/3 - 1)^2 + (4s/7 - 1)^2, so s = (1 + 2/3 + 4/7) / (1 + 4/9 + 16/49) = 0.987... / ...
  const auto coefficients = fit_coefficients(line(2.0, -1.0, {1, 2, 4}));
  const double slope = (1.0 + 2.0 / 3.0 + 4.0 / 7.0) / (1.0 + 4.0 / 9.0 + 16.0 / 49.0);
  EXPECT_NEAR(coefficients[0], slope, 1e-12);
  EXPECT_EQ(coefficients[1], 0.0);
}

TEST(RelativeFit, ErrorsAreRelativeSoThatSmallSamplesCountAsMuch) {
  // One term, y = 1 at x = 1 and y = 200 at x = 100: the slope is the minimiser of (s - 1)^2 + (s/2 - 1)^2 = 1.2. Plain
  // least squares would say 2.0.
  EXPECT_NEAR(fit_coefficients({{{1.0}, 1.0}, {{100.0}, 200.0}})[0], 1.2, 1e-12);
}

TEST(RelativeFit, HeldOutErrorIsThatOfAPredictionFromTheOthers) {
  // Sorted by seconds: 1, 2, 3.3, 4, 5. The second and the fifth of five would be kept out, but the largest never is:
  // only 2 is. The others lie on s x with s = their fit; x of the sample kept out is 2.2.
  std::vector<FitSample> samples = {{{1.0}, 1.0}, {{2.2}, 2.0}, {{3.3}, 3.3}, {{4.0}, 4.0}, {{5.0}, 5.0}};
  const RelativeFit fit = fit_relative(samples);
  EXPECT_EQ(fit.held_out, 1);
  EXPECT_NEAR(fit.relative_error, 0.1, 1e-12);  // 2.2 / 2 - 1
}

TEST(RelativeFit, FewSamplesAreAllUsedAndSaySo) {
  const RelativeFit fit = fit_relative({{{1.0, 1.0}, 2.0}, {{2.0, 1.0}, 3.0}});
  EXPECT_EQ(fit.held_out, 0);
  EXPECT_NEAR(fit.coefficients[0], 1.0, 1e-12);
  EXPECT_NEAR(fit.coefficients[1], 1.0, 1e-12);
}

TEST(RelativeFit, OneSampleTakesTheFirstTermThatIsThere) {
  const auto coefficients = fit_coefficients({{{0.0, 2.0, 1.0}, 6.0}});
  EXPECT_EQ(coefficients[0], 0.0);
  EXPECT_NEAR(coefficients[1], 3.0, 1e-12);
  EXPECT_EQ(coefficients[2], 0.0);
}

}  // namespace
}  // namespace reckon
