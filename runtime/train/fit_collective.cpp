#include "runtime/train/fit_collective.h"

#include <array>
#include <cmath>

#include "runtime/comm/measure_collective.h"
#include "runtime/train/statistics.h"

namespace reckon {
namespace {

constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                       Collective::all_to_all, Collective::send_receive};
constexpr std::int64_t kSizes[] = {1 << 12, 1 << 16, 1 << 20, 1 << 23, 1 << 25};

using Terms = std::array<double, 3>;

/// Solves the normal equations of the chosen terms by Gaussian elimination; empty when they are singular or a
/// coefficient is negative.
std::vector<double> solve(const std::vector<Terms>& rows, const std::vector<int>& chosen) {
  const std::size_t n = chosen.size();
  std::vector<std::vector<double>> matrix(n, std::vector<double>(n + 1, 0.0));
  for (const Terms& row : rows)
    for (std::size_t i = 0; i < n; ++i) {
      const double left = row[static_cast<std::size_t>(chosen[i])];
      for (std::size_t j = 0; j < n; ++j) matrix[i][j] += left * row[static_cast<std::size_t>(chosen[j])];
      matrix[i][n] += left;  // every right side is 1: relative errors
    }
  for (std::size_t i = 0; i < n; ++i) {
    if (matrix[i][i] <= 0.0) return {};
    for (std::size_t k = 0; k < n; ++k) {
      if (k == i) continue;
      const double factor = matrix[k][i] / matrix[i][i];
      for (std::size_t j = i; j <= n; ++j) matrix[k][j] -= factor * matrix[i][j];
    }
  }
  std::vector<double> solution;
  for (std::size_t i = 0; i < n; ++i) {
    solution.push_back(matrix[i][n] / matrix[i][i]);
    if (!(solution.back() >= 0.0)) return {};
  }
  return solution;
}

double squared_error(const std::vector<Terms>& rows, const Terms& coefficients) {
  double sum = 0.0;
  for (const Terms& row : rows) {
    const double error = row[0] * coefficients[0] + row[1] * coefficients[1] + row[2] * coefficients[2] - 1.0;
    sum += error * error;
  }
  return sum / static_cast<double>(rows.size());
}

}  // namespace

CollectiveFit fit_collective(Collective collective, int ranks, const std::vector<SizedTime>& samples) {
  std::vector<Terms> rows;
  for (const SizedTime& s : samples)
    rows.push_back({1.0 / s.seconds, std::sqrt(s.bytes) / s.seconds, s.bytes / s.seconds});
  Terms best{};
  double least = INFINITY;
  for (const std::vector<int>& chosen : std::vector<std::vector<int>>{{0, 1, 2}, {0, 2}, {1, 2}, {2}}) {
    const std::vector<double> solution = solve(rows, chosen);
    if (solution.empty()) continue;
    Terms coefficients{};
    for (std::size_t i = 0; i < chosen.size(); ++i) coefficients[static_cast<std::size_t>(chosen[i])] = solution[i];
    const double error = squared_error(rows, coefficients);
    if (error >= least || coefficients[2] <= 0.0) continue;
    least = error;
    best = coefficients;
  }
  CollectiveFit fit;
  fit.collective = collective;
  fit.ranks_per_node = ranks;
  fit.alpha = Seconds(best[0]);
  fit.gamma_seconds_per_sqrt_byte = best[1];
  fit.bandwidth = BytesPerSecond(1.0 / best[2]);
  fit.relative_error = std::sqrt(least);
  fit.provenance = Provenance::calibrated;
  return fit;
}

void CollectiveSampler::round() {
  if (group_.size() == 1) return;
  for (const Collective collective : kCollectives)
    for (const std::int64_t bytes : kSizes)
      rounds_[collective][bytes].push_back(measure_collective(group_, collective, Bytes(bytes), 2).fastest.value);
}

std::vector<CollectiveFit> CollectiveSampler::fits() const {
  std::vector<CollectiveFit> fits;
  for (const auto& [collective, sizes] : rounds_) {
    std::vector<SizedTime> samples;
    for (const auto& [bytes, seconds] : sizes) samples.push_back({static_cast<double>(bytes), median(seconds)});
    fits.push_back(fit_collective(collective, group_.size(), samples));
  }
  return fits;
}

}  // namespace reckon
