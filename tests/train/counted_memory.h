// What ranks held while they trained, for comparison with predicted memory.
#pragma once

#include <mutex>
#include <vector>

#include "tests/train/small_plan.h"

namespace reckon::testing {

struct Counted {
  BytesByCategory at_peak{}, after_step{};
  Bytes peak;
};

inline std::int64_t of(const BytesByCategory& bytes, MemoryCategory category) {
  return bytes[static_cast<std::size_t>(category)];
}

/// Two steps; of the rank with the highest peak of each pipeline stage.
inline std::vector<Counted> count_stages(const Plan& plan) {
  std::vector<Counted> stages(static_cast<std::size_t>(plan.parallel.pipeline));
  std::mutex mutex;
  on_ranks(plan, [&](RankTrainer& trainer, int, MemoryAccount& account) {
    trainer.step(0);
    trainer.step(1);
    const std::lock_guard lock(mutex);
    Counted& counted = stages[static_cast<std::size_t>(trainer.groups().coordinates.pipeline)];
    if (account.peak() > counted.peak) counted = {account.at_peak(), account.in_use(), account.peak()};
  });
  return stages;
}

}  // namespace reckon::testing
