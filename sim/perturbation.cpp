#include "sim/perturbation.h"

#include <cmath>
#include <numeric>

namespace reckon {
namespace {

constexpr int kQuantiles = 4096;  // a power of two: the top bits of a hash choose one

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014): the mixing step of SplitMix64.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

/// Inverse of the normal distribution function by bisection; only called when a table is made.
double normal_quantile(double probability) {
  double low = -10.0, high = 10.0;
  for (int i = 0; i < 80; ++i) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

std::vector<double> log_normal_quantiles(double variation) {
  const double sigma = std::sqrt(std::log1p(variation * variation));
  std::vector<double> quantiles(kQuantiles);
  for (int i = 0; i < kQuantiles; ++i)
    quantiles[static_cast<std::size_t>(i)] = std::exp(sigma * normal_quantile((i + 0.5) / kQuantiles));
  const double mean = std::accumulate(quantiles.begin(), quantiles.end(), 0.0) / kQuantiles;
  for (double& quantile : quantiles) quantile /= mean;
  return quantiles;
}

}  // namespace

Perturbation::Perturbation(std::uint64_t seed, double jitter, const std::map<std::int64_t, double>& slow_ranks,
                           int ranks)
    : seed_(mix(seed)) {
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
  return rank_factor * quantiles_[mix(seed_ ^ mix(place)) >> 52];
}

}  // namespace reckon
