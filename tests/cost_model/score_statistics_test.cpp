#include "cost_model/score_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace reckon {
namespace {

TEST(ScoreStatistics, ErrorsByTheirFormulas) {
  // predicted / measured: 1.1, 0.8, 1.0: errors 0.1, -0.2, 0.
  const ErrorStatistics s = error_statistics({{1.1, 1.0, true}, {1.6, 2.0, false}, {3.0, 3.0, true}});
  EXPECT_EQ(s.n, 3);
  EXPECT_NEAR(*s.mape, 0.1, 1e-12);
  EXPECT_NEAR(*s.bias, -0.1 / 3, 1e-12);
  EXPECT_NEAR(*s.median_abs, 0.1, 1e-12);
  EXPECT_NEAR(*s.p95_abs, 0.19, 1e-12);  // between 0.1 and 0.2 at 0.9 of the way
  EXPECT_NEAR(*s.max_abs, 0.2, 1e-12);
  EXPECT_NEAR(*s.coverage, 2.0 / 3.0, 1e-12);
  const double g = std::cbrt(1.1 * 0.8);
  EXPECT_NEAR(*s.mape_unbiased, (std::abs(1.1 / g - 1) + std::abs(0.8 / g - 1) + std::abs(1 / g - 1)) / 3, 1e-12);
}

TEST(ScoreStatistics, NothingMeasuredIsUndefined) {
  const ErrorStatistics s = error_statistics({});
  EXPECT_EQ(s.n, 0);
  EXPECT_FALSE(s.mape.has_value());
}

TEST(ScoreStatistics, RankCorrelationsWithTies) {
  // Ranks 1 2 3 4 against 1 2.5 2.5 4: Spearman = 4.5 / sqrt(5 * 4.5); Kendall tau-b = 5 / sqrt(6 * 5).
  const std::vector<PlanTimes> plans{{1, 10}, {2, 20}, {3, 20}, {4, 30}};
  EXPECT_NEAR(*spearman(plans), 4.5 / std::sqrt(5.0 * 4.5), 1e-12);
  EXPECT_NEAR(*kendall_tau_b(plans), 5.0 / std::sqrt(30.0), 1e-12);
}

TEST(ScoreStatistics, RegretIsWhatTheUserPays) {
  EXPECT_NEAR(regret({{1, 12}, {2, 10}, {3, 20}}), 0.2, 1e-12);
  EXPECT_NEAR(regret({{1, 12}, {1, 10}, {3, 20}}), 0.1, 1e-12);  // a tie: the mean of 20 % and none
}

TEST(ScoreStatistics, SetsOfTwoPlansAreNotRanked) {
  const OrderStatistics s = order_statistics({{{1, 1}, {2, 2}}, {{1, 1}, {2, 2}, {3, 3}}});
  EXPECT_EQ(s.regret_groups, 1);
  EXPECT_EQ(*s.spearman, 1.0);
}

}  // namespace
}  // namespace reckon
