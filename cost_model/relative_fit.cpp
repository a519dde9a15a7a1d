#include "cost_model/relative_fit.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace reckon {

namespace {

using Subset = std::vector<Eigen::Index>;

/// All subsets of `terms` terms but the empty one, smaller ones first, earlier terms first.
std::vector<Subset> subsets(std::size_t terms) {
  std::vector<Subset> all;
  for (unsigned mask = 1; mask < (1u << terms); ++mask) {
    Subset subset;
    for (std::size_t term = 0; term < terms; ++term)
      if (mask & (1u << term)) subset.push_back(static_cast<Eigen::Index>(term));
    all.push_back(std::move(subset));
  }
  std::stable_sort(all.begin(), all.end(), [](const Subset& a, const Subset& b) { return a.size() < b.size(); });
  return all;
}

/// Terms over measured seconds, so that the right side is 1 everywhere.
Eigen::MatrixXd relative_terms(const std::vector<FitSample>& samples) {
  const auto rows = static_cast<Eigen::Index>(samples.size());
  const auto columns = static_cast<Eigen::Index>(samples.front().terms.size());
  Eigen::MatrixXd matrix(rows, columns);
  for (Eigen::Index row = 0; row < rows; ++row) {
    const FitSample& sample = samples[static_cast<std::size_t>(row)];
    for (Eigen::Index column = 0; column < columns; ++column)
      matrix(row, column) = sample.terms[static_cast<std::size_t>(column)] / sample.seconds;
  }
  return matrix;
}

double root_mean_square(const std::vector<FitSample>& samples, const std::vector<double>& coefficients) {
  double sum = 0;
  for (const FitSample& sample : samples) {
    double predicted = 0;
    for (std::size_t term = 0; term < coefficients.size(); ++term) predicted += coefficients[term] * sample.terms[term];
    sum += std::pow(predicted / sample.seconds - 1.0, 2);
  }
  return std::sqrt(sum / static_cast<double>(samples.size()));
}

}  // namespace

/// The best non-negative solution is the plain least-squares solution of the terms that it uses. With few terms all
/// subsets can be tried, which is exact and has no tolerance to choose.
std::vector<double> fit_coefficients(const std::vector<FitSample>& samples) {
  if (samples.empty()) throw std::invalid_argument("a fit needs samples");
  const Eigen::MatrixXd matrix = relative_terms(samples);
  if (matrix.cols() > 6) throw std::invalid_argument("a fit takes six terms at most");
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(matrix.rows());
  std::vector<double> best(static_cast<std::size_t>(matrix.cols()), 0.0);
  double least = std::numeric_limits<double>::infinity();
  for (const Subset& subset : subsets(best.size())) {
    const Eigen::MatrixXd chosen = matrix(Eigen::all, subset);
    const Eigen::VectorXd scale = chosen.colwise().norm().transpose();
    if (scale.minCoeff() <= 0.0) continue;  // a term that is zero in all samples says nothing
    const auto solver = (chosen * scale.cwiseInverse().asDiagonal()).colPivHouseholderQr();
    if (solver.rank() < chosen.cols()) continue;
    const Eigen::VectorXd solution = scale.cwiseInverse().asDiagonal() * solver.solve(ones);
    if (solution.minCoeff() < 0.0) continue;
    const double error = (chosen * solution - ones).squaredNorm();
    if (error >= least * (1.0 - 1e-9) || (std::isfinite(least) && least < 1e-24)) continue;
    least = error;
    std::fill(best.begin(), best.end(), 0.0);
    for (std::size_t i = 0; i < subset.size(); ++i)
      best[static_cast<std::size_t>(subset[i])] = solution[static_cast<Eigen::Index>(i)];
  }
  return best;
}

RelativeFit fit_relative(std::vector<FitSample> samples) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const FitSample& a, const FitSample& b) { return a.seconds < b.seconds; });
  RelativeFit fit;
  fit.coefficients = fit_coefficients(samples);
  std::vector<FitSample> kept, held_out;
  for (std::size_t i = 0; i < samples.size(); ++i)
    (i % 3 == 1 && i + 1 < samples.size() ? held_out : kept).push_back(samples[i]);
  if (samples.size() < 4) {
    fit.relative_error = root_mean_square(samples, fit.coefficients);
    return fit;
  }
  fit.held_out = static_cast<int>(held_out.size());
  fit.relative_error = root_mean_square(held_out, fit_coefficients(kept));
  return fit;
}

}  // namespace reckon
