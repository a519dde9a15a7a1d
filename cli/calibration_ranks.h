// How many ranks measure: agreed between `reckon calibrate`, which starts them, and reckon-rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace reckon {

struct CalibrationRanks {
  std::int64_t computing = 1;  // that measure kernels and ops at the same time: at most one a core
  std::int64_t started = 1;    // with those that only take part in collectives of more ranks than cores
};

/// `worlds` are the ranks of the plans to measure; none: a core's worth. Plans of more than four ranks a core have
/// their collectives priced from smaller groups. `asked` replaces the number of computing ranks unless it is 0.
inline CalibrationRanks calibration_ranks(const std::vector<std::int64_t>& worlds, std::int64_t cores,
                                          std::int64_t asked) {
  constexpr std::int64_t kMostRanksACore = 4;
  const std::int64_t most = worlds.empty() ? cores : *std::max_element(worlds.begin(), worlds.end());
  CalibrationRanks ranks;
  ranks.started = ranks.computing = asked > 0 ? asked : std::min(most, cores);
  for (const std::int64_t world : worlds)
    if (world <= kMostRanksACore * cores) ranks.started = std::max(ranks.started, world);
  return ranks;
}

}  // namespace reckon
