#include "runtime/train/collective_sampler.h"

#include <algorithm>

#include "runtime/comm/measure_collective.h"

namespace reckon {
namespace {

constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                       Collective::all_to_all, Collective::send_receive};
constexpr std::int64_t kSizes[] = {1 << 12, 1 << 15, 1 << 18, 1 << 20, 1 << 22, 1 << 24};
constexpr int kRepetitions = 3;

}  // namespace

CollectiveSampler::CollectiveSampler(Communicator& together, int ranks)
    : together_(together), group_(together.split(together.rank() / ranks, together.rank(), "sampled group")) {}

void CollectiveSampler::sample() {
  for (const Collective collective : kCollectives)
    for (const std::int64_t bytes : kSizes) {
      together_.barrier().wait();
      double seconds[] = {measure_collective(*group_, collective, Bytes(bytes), kRepetitions).median.value};
      together_.all_reduce(view(seconds), Reduction::maximum).wait();
      series_[collective][bytes].add(seconds[0]);
    }
}

void CollectiveSampler::drop_last() {
  for (auto& [collective, sizes] : series_)
    for (auto& [bytes, series] : sizes) series.drop(1);
}

/// Of the sizes whose time is bandwidth; latencies of microseconds never settle to a per cent, and matter little.
double CollectiveSampler::relative_error() const {
  double worst = 0;
  for (const auto& [collective, sizes] : series_)
    for (const auto& [bytes, series] : sizes)
      if (bytes >= 1 << 22) worst = std::max(worst, series.relative_error() / 3);
  return worst;
}

std::vector<CollectiveSamples> CollectiveSampler::samples(double cores) const {
  const double ranks_per_core = std::max(1.0, together_.size() / cores);
  std::vector<CollectiveSamples> all;
  for (const auto& [collective, sizes] : series_) {
    CollectiveSamples samples{collective, group_->size(), together_.size() / group_->size(), {}};
    for (const auto& [bytes, series] : sizes)
      samples.times.push_back({Bytes(bytes), Seconds(series.result() / ranks_per_core)});
    all.push_back(std::move(samples));
  }
  return all;
}

}  // namespace reckon
