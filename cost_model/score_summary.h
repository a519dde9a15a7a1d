// Statistics of a group of scored rows.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cost_model/score_prediction.h"

namespace reckon {

/// One row under one assumption.
struct Scored {
  std::string set;        // rows of one text do the same work
  std::string plan_text;  // of equal texts, runs are repeats of one plan
  ScoredRow record;
  RowComparison compared;
};

/// Errors, order of the plans that do the same work, and what was predicted of those that ran out of memory.
ScoreGroup group_summary(const std::string& name, std::size_t rows, const std::map<std::string, std::string>& assume,
                         const std::vector<Scored>& scored, const std::vector<ScoredRow>& skipped);

}  // namespace reckon
