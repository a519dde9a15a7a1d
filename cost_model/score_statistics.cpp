#include "cost_model/score_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reckon {

namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> mean_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    const double rank = 1.0 + 0.5 * static_cast<double>(first + last);
    for (std::size_t i = first; i <= last; ++i) ranks[order[i]] = rank;
    first = last + 1;
  }
  return ranks;
}

std::optional<double> correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = mean(a), mean_b = mean(b);
  double ab = 0.0, aa = 0.0, bb = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  if (aa <= 0.0 || bb <= 0.0) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

std::vector<double> side(const std::vector<PlanTimes>& plans, double PlanTimes::*which) {
  std::vector<double> values;
  for (const PlanTimes& plan : plans) values.push_back(plan.*which);
  return values;
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double position = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

ErrorStatistics error_statistics(const std::vector<Comparison>& comparisons) {
  ErrorStatistics statistics;
  statistics.n = static_cast<std::int64_t>(comparisons.size());
  if (comparisons.empty()) return statistics;
  std::vector<double> errors, absolute, ratios;
  double logs = 0.0, inside = 0.0;
  for (const Comparison& one : comparisons) {
    errors.push_back(one.error());
    absolute.push_back(std::abs(one.error()));
    ratios.push_back(one.predicted / one.measured);
    logs += std::log(ratios.back());
    inside += one.inside ? 1.0 : 0.0;
  }
  const auto n = static_cast<double>(comparisons.size());
  const double factor = std::exp(logs / n);
  double unbiased = 0.0;
  for (const double ratio : ratios) unbiased += std::abs(ratio / factor - 1.0);
  statistics.mape = mean(absolute);
  statistics.bias = mean(errors);
  statistics.median_abs = median(absolute);
  statistics.p95_abs = quantile(absolute, 0.95);
  statistics.max_abs = *std::max_element(absolute.begin(), absolute.end());
  statistics.mape_unbiased = unbiased / n;
  statistics.coverage = inside / n;
  return statistics;
}

std::optional<double> spearman(const std::vector<PlanTimes>& plans) {
  if (plans.size() < 2) return std::nullopt;
  return correlation(mean_ranks(side(plans, &PlanTimes::predicted)), mean_ranks(side(plans, &PlanTimes::measured)));
}

std::optional<double> kendall_tau_b(const std::vector<PlanTimes>& plans) {
  double score = 0.0, not_tied_a = 0.0, not_tied_b = 0.0;
  const auto sign = [](double x) { return static_cast<double>((x > 0.0) - (x < 0.0)); };
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double a = sign(plans[i].predicted - plans[j].predicted), b = sign(plans[i].measured - plans[j].measured);
      score += a * b;
      not_tied_a += a * a;
      not_tied_b += b * b;
    }
  }
  if (not_tied_a == 0.0 || not_tied_b == 0.0) return std::nullopt;
  return score / std::sqrt(not_tied_a * not_tied_b);
}

double regret(const std::vector<PlanTimes>& plans) {
  const std::vector<double> predicted = side(plans, &PlanTimes::predicted),
                            measured = side(plans, &PlanTimes::measured);
  const double chosen = *std::min_element(predicted.begin(), predicted.end());
  const double best = *std::min_element(measured.begin(), measured.end());
  double sum = 0.0, ties = 0.0;
  for (const PlanTimes& plan : plans) {
    if (plan.predicted != chosen) continue;
    sum += plan.measured / best - 1.0;
    ties += 1.0;
  }
  return sum / ties;
}

OrderStatistics order_statistics(const std::vector<std::vector<PlanTimes>>& sets) {
  OrderStatistics statistics;
  std::vector<double> spearmans, kendalls, regrets;
  for (const std::vector<PlanTimes>& plans : sets) {
    if (plans.size() < 3) continue;
    ++statistics.regret_groups;
    if (const auto value = spearman(plans)) spearmans.push_back(*value);
    if (const auto value = kendall_tau_b(plans)) kendalls.push_back(*value);
    regrets.push_back(regret(plans));
  }
  if (!spearmans.empty()) statistics.spearman = mean(spearmans);
  if (!kendalls.empty()) statistics.kendall = mean(kendalls);
  if (!regrets.empty()) {
    statistics.regret_mean = mean(regrets);
    statistics.regret_max = *std::max_element(regrets.begin(), regrets.end());
  }
  return statistics;
}

}  // namespace reckon
