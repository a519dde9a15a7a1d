#include "report/compare_losses.h"

#include <gtest/gtest.h>

namespace reckon {
namespace {

std::vector<LoggedStep> curve(std::int64_t first_step, const std::vector<double>& losses) {
  std::vector<LoggedStep> steps;
  for (const double loss : losses) steps.push_back({first_step++, loss, 0, 0, 0, 0, 0});
  return steps;
}

// Twenty steps: 8 falling by 0.25 a step; the other is the same up to step 3, twice as high at step 5, a quarter higher
// at the end. The last tenth are steps 19 and 20: losses 3.5 and 3.25, mean 3.375, and 4.21875.
TEST(CompareLosses, SaysWhereRunsPartAndEnd) {
  std::vector<double> a, b;
  for (int step = 1; step <= 20; ++step) {
    const double loss = 8 - 0.25 * (step - 1);
    a.push_back(loss);
    b.push_back(step <= 3 ? loss : step == 5 ? 2 * loss : 1.25 * loss);
  }
  const auto losses = compare_losses({"kept", "narrow"}, curve(1, a), curve(1, b));
  ASSERT_TRUE(losses);
  EXPECT_EQ(losses->parts_at, 4);
  EXPECT_EQ(losses->largest_at, 5);
  EXPECT_EQ(losses->largest_difference, 1.0);
  EXPECT_EQ(losses->final_steps, 2);
  EXPECT_EQ(losses->first_final, 3.375);
  EXPECT_EQ(losses->second_final, 4.21875);
  EXPECT_EQ(losses_text(*losses),
            "loss over 20 steps, mean of the last 2 steps: kept 3.3750, narrow 4.2188 (+25.0 %)\n"
            "the losses part at step 4; furthest at step 5: +100.0 %\n");
}

TEST(CompareLosses, OnlyStepsOfBothCount) {
  const auto losses = compare_losses({"a", "b"}, curve(1, {5, 4, 3}), curve(2, {4, 3, 2}));
  ASSERT_TRUE(losses);
  EXPECT_EQ(losses->steps, (std::vector<std::int64_t>{2, 3}));
  EXPECT_FALSE(losses->parts_at);
  EXPECT_EQ(losses->largest_difference, 0);
  EXPECT_FALSE(compare_losses({"a", "b"}, curve(1, {5}), curve(2, {4})));
}

}  // namespace
}  // namespace reckon
