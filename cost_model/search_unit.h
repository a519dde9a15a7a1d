// One unit of a search: all candidates that share tensor, ulysses, ring and expert degrees. Units are independent, so
// they run on any thread in any order and give the same result.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cost_model/candidate_cost.h"
#include "cost_model/fixed_keys.h"
#include "cost_model/search_space.h"

namespace reckon {

struct FoundPlan {
  double seconds = 0;
  Bytes need;
  std::int64_t order = 0;  // place in the enumeration, which decides ties
  Candidate candidate;
  std::vector<std::int64_t> recompute_layers;  // by stage; empty in mode none

  bool operator<(const FoundPlan& other) const {
    if (seconds != other.seconds) return seconds < other.seconds;
    if (need != other.need) return need < other.need;
    return order < other.order;
  }
};

/// Plans of which none is both slower and larger than another, by time.
class ParetoSet {
 public:
  void add(const FoundPlan& plan);
  const std::vector<FoundPlan>& plans() const { return plans_; }

 private:
  std::vector<FoundPlan> plans_;  // seconds rise, needs fall
};

struct UnitRejection {
  std::int64_t count = 0;
  Candidate example;
};

struct UnitResult {
  std::int64_t enumerated = 0, legal = 0, fits = 0;
  std::vector<FoundPlan> best;  // sorted, at most as many as asked for
  ParetoSet pareto;
  std::map<std::string, UnitRejection> rejected;
  bool complete = true;  // false: cut short
};

/// `order` is the unit's place; `keep` how many of the best plans are wanted; candidates that `fixed` does not allow do
/// not count. Cut short when `out_of_time` says so,
/// which is asked for every pipeline degree and micro-batch.
UnitResult search_unit(const Plan& base, const Degrees& inner, std::int64_t devices, std::int64_t order,
                       std::size_t keep, const FixedKeys& fixed, const std::function<bool()>& out_of_time,
                       CandidateModel& model);

}  // namespace reckon
