#include "sim/perturbation.h"

#include <cmath>
#include <numeric>

#include "plan/counter_random.h"

namespace reckon {
namespace {

constexpr int kQuantiles = 4096;  // a power of two: the top bits of a hash choose one

std::vector<double> log_normal_quantiles(double variation) {
  const double sigma = std::sqrt(std::log1p(variation * variation));
  std::vector<double> quantiles(kQuantiles);
  for (int i = 0; i < kQuantiles; ++i)
    quantiles[static_cast<std::size_t>(i)] = portable_exp(sigma * inverse_normal((i + 0.5) / kQuantiles));
  const double mean = std::accumulate(quantiles.begin(), quantiles.end(), 0.0) / kQuantiles;
  for (double& quantile : quantiles) quantile /= mean;
  return quantiles;
}

}  // namespace

Perturbation::Perturbation(std::uint64_t seed, double jitter, const std::map<std::int64_t, double>& slow_ranks,
                           int ranks)
    : seed_(seed) {
  if (jitter <= 0.0 && slow_ranks.empty()) return;
  rank_factors_.assign(static_cast<std::size_t>(ranks), 1.0);
  for (const auto& [rank, factor] : slow_ranks)
    if (rank >= 0 && rank < ranks) rank_factors_[static_cast<std::size_t>(rank)] = factor;
  if (jitter > 0.0) quantiles_ = log_normal_quantiles(jitter);
}

double Perturbation::factor(int rank, int stream, std::int64_t task) const {
  if (is_none()) return 1.0;
  const double rank_factor = rank_factors_[static_cast<std::size_t>(rank)];
  if (quantiles_.empty()) return rank_factor;
  const auto place = (static_cast<std::uint64_t>(rank) << 40) ^ (static_cast<std::uint64_t>(stream) << 36) ^
                     static_cast<std::uint64_t>(task);
  return rank_factor * quantiles_[random_bits(seed_, place) >> 52];
}

}  // namespace reckon
