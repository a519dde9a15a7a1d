// Every legal plan around a plan's model, hardware and batch on a number of devices, ranked by predicted step time
// (space: search_space.h; method: docs/search.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/search_result.h"

namespace reckon {

struct SearchOptions {
  std::int64_t devices = 0;        // 0 = as many as the plan's degrees multiply to
  int top = 10;                    // plans to rank
  int threads = 0;                 // 0 = one for each core; the result does not depend on it
  std::vector<std::string> fixed;  // keys that stay as the plan has them (fixed_keys.h)
  Seconds limit{0.0};              // end about then with what was found; 0 = search the whole space
  /// Called with the share of the space that is done and the plans in it, from one thread at a time.
  std::function<void(double share, std::int64_t plans)> progress;
};

/// The ranked plans and the Pareto set are predicted in full, allocator replay included. Throws RuleError when the
/// device cannot compute in the plan's precision.
SearchResult search(const Plan& plan, const SearchOptions& options = {});

}  // namespace reckon
