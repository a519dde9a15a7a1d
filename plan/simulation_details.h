// What a simulation tells beyond the profile: where the step hangs, what each part costs, how steps vary, what does not
// fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/memory_category.h"
#include "plan/step_profile.h"
#include "plan/units.h"

namespace reckon {

/// The step if one part were free.
struct Saving {
  std::string
      component;  // "forward.attention", "tensor.all_gather", "all communication", "bubble", "overlap slow-down"
  Seconds step;   // duration without it
  Seconds saved;  // of the whole step's duration
};

/// The first allocation that does not fit.
struct RefusedAllocation {
  std::int64_t stage = 0, rank = 0;
  std::optional<std::string> op;                   // "backward.attention"; none: what lives during the whole step
  std::optional<std::int64_t> micro_batch, layer;  // none: of no single one
  MemoryCategory category = MemoryCategory::transient;
  Seconds time;
  Bytes asked, allocated, reserved, limit;  // the limit is for what this process allocates: the plan's limit ...
  Bytes communicators;                      // ... less these
};

struct SimulationDetails {
  std::int64_t events = 0, simulated_ranks = 0;
  std::vector<TimeComponent> critical_path;  // largest first; empty when too large to keep
  std::vector<Saving> savings;               // largest first; empty unless asked for
  std::vector<Seconds> step_samples;         // sorted; one without jitter
  std::optional<RefusedAllocation> out_of_memory;
};

/// Value below which a share of the sorted samples lies (nearest rank). Throws std::logic_error without samples.
Seconds quantile(const std::vector<Seconds>& sorted, double share);

}  // namespace reckon
