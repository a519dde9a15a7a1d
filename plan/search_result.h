// What a search over plans found (schema "reckon.search/1"). Filled by cost_model, printed by report.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/units.h"

namespace reckon {

/// One plan, as the overrides that turn the searched plan into it: {"parallel.tensor", "4"}, ...
struct RankedPlan {
  std::int64_t rank = 0;  // 1 = fastest of those that fit
  std::vector<std::pair<std::string, std::string>> overrides;
  Seconds step;
  Bytes memory;  // that the worst rank needs, as compared with the limit (without the context)
  double tokens_per_second_per_device = 0;
  double mfu = 0;
  double fit_probability = 1;
};

/// Plans that were not ranked, by reason: a broken rule, or the memory component that crosses the limit.
struct Rejection {
  std::string reason;
  std::int64_t count = 0;
  std::string example;  // overrides of one of them, "parallel.tensor=64 parallel.data=1"
};

/// The best plan with one knob turned one step, other degrees following so that the devices are used.
struct KnobStep {
  std::string change;  // "parallel.tensor 8 -> 4, parallel.data 2 -> 4"
  bool fits = false;
  Seconds step;         // of a legal plan
  Bytes memory;         // that the worst rank needs
  std::string illegal;  // the rule that it breaks; empty if it is legal
};

struct SearchResult {
  std::int64_t enumerated = 0, legal = 0;
  std::int64_t fits = 0;              // without the allocator's slack, which is replayed for plans that might be listed
  std::int64_t refused_by_slack = 0;  // of those replayed
  Bytes memory_limit;                 // of a device
  Seconds seconds;                    // time the search took
  double plans_per_second = 0;
  std::vector<RankedPlan> plans;   // the best, by step time
  std::vector<RankedPlan> pareto;  // no other plan is both faster and smaller; by step time
  std::vector<Rejection> rejected;
  bool complete = true;         // false: the time limit ended the search before the space did
  std::string bound_by;         // what the best plan's step consists of, the largest part first
  std::vector<KnobStep> knobs;  // around the best plan
};

}  // namespace reckon
