// One row of measured runs against its prediction: which seconds and bytes of the two are comparable.
#pragma once

#include <cstddef>
#include <optional>

#include "cost_model/score.h"
#include "cost_model/score_row.h"
#include "cost_model/score_sources.h"
#include "cost_model/score_statistics.h"

namespace reckon {

struct RowComparison {
  std::optional<Comparison> time, memory;
  bool tflops_only = false;  // its speed is only stated in a convention that was not asked for
};

/// Predicts `plan`, compares it with row `index` of the table and fills the record with both.
/// Throws RuleError or ConfigError for a plan that cannot be predicted.
RowComparison compare_row(const CsvTable& table, std::size_t index, const RowPlan& row, const Plan& plan,
                          const ScoreSource& source, TflopsConvention convention, ScoredRow& record);

}  // namespace reckon
