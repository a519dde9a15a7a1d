// Statistics of predictions against measurements, each named by its formula in plan/score_result.h.
#pragma once

#include <optional>
#include <vector>

#include "plan/score_result.h"

namespace reckon {

/// One comparison; `inside` says whether the measured value lies in the predicted 80 % interval.
struct Comparison {
  double predicted = 0, measured = 0;
  bool inside = false;

  double error() const { return (predicted - measured) / measured; }
};

ErrorStatistics error_statistics(const std::vector<Comparison>& comparisons);

/// Plans that do the same work, with repeats merged.
struct PlanTimes {
  double predicted = 0, measured = 0;
};

/// Rank correlations with ties (Spearman on mean ranks, Kendall tau-b); empty when one side has no order.
std::optional<double> spearman(const std::vector<PlanTimes>& plans);
std::optional<double> kendall_tau_b(const std::vector<PlanTimes>& plans);

/// Measured time of the plan predicted fastest / fastest measured time - 1, the mean over plans predicted equally fast.
double regret(const std::vector<PlanTimes>& plans);

/// Plain means over the sets; sets of fewer than 3 plans are left out.
OrderStatistics order_statistics(const std::vector<std::vector<PlanTimes>>& sets);

double median(std::vector<double> values);
/// Linear interpolation between order statistics.
double quantile(std::vector<double> values, double share);

}  // namespace reckon
