// Two plans set side by side: which keys differ, and what each difference costs or saves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/units.h"
#include "report/table.h"

namespace reckon {

/// What is predicted for one plan.
struct PlanOutcome {
  std::string name;
  Seconds step;
  Bytes memory;  // of the worst rank, without the context
  bool fits = false;
};

/// One changed key (or several that only work together) in the first plan, everything else as it was.
struct KeyEffect {
  std::string key, from, to;
  std::optional<Seconds> step;  // added by the change; empty: the first plan with this change alone is not legal
  std::optional<Bytes> memory;
  std::string note;
};

/// The steps and the bytes of `rows` add up to the difference of the outcomes: the last row is what the keys do
/// together beyond what they do alone.
struct PlanDifference {
  PlanOutcome from, to;
  std::vector<KeyEffect> rows;
};

std::string difference_text(const PlanDifference& difference, const TextStyle& style);

/// Schema "reckon.plan_difference/1".
std::string difference_json(const PlanDifference& difference);

}  // namespace reckon
