// The cells of one row of measured runs, and what they decide: each function reads a few columns. Rules: docs/score.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost_model/csv_table.h"
#include "cost_model/score_sources.h"
#include "plan/plan.h"

namespace reckon {

/// Reads the cells of one row; remembers whose default was used.
class ScoreCells {
 public:
  /// Table and source outlive it. `row` counts from 0.
  ScoreCells(const CsvTable& table, std::size_t row, const ScoreSource& source)
      : table_(table), row_(row), source_(source) {}

  const ScoreSource& source() const { return source_; }
  bool empty(const std::string& column) const { return text(column).empty(); }
  const std::string& text(const std::string& column) const { return table_.cell(row_, column); }
  std::optional<std::int64_t> count(const std::string& column) const { return table_.count(row_, column); }
  std::optional<double> number(const std::string& column) const { return table_.number(row_, column); }

  /// What the source is known to do in an empty cell.
  std::optional<std::string> known(const std::string& column) const;
  /// Cell, else what the source is known to do, else the default; the latter two are assumptions.
  std::string text_or(const std::string& column, const std::string& fallback);
  std::int64_t count_or(const std::string& column, std::int64_t fallback);
  void assumed(const std::string& column) { assumptions.push_back(column); }

  std::vector<std::string> assumptions;

 private:
  const CsvTable& table_;
  std::size_t row_;
  const ScoreSource& source_;
};

/// A whole number and nothing else. Throws ConfigError naming where it stands.
std::int64_t whole_number(const std::string& text, const std::string& where);

/// Lower case without blanks, dashes, dots, underscores; endings "truncated to N layers", "SFT" and "(...)" dropped.
std::string normalized_model_name(const std::string& name);

/// The model: sizes from the library where that knows it, overridden by filled cells; else all from the cells.
ModelSpec row_model(ScoreCells& row, const std::optional<ModelSpec>& known);

/// tp, pp, cp, dp, vpp, ep, ulysses, ring on `gpus` devices; an empty text on success, else the reason.
std::string set_layout(ScoreCells& row, std::int64_t gpus, ParallelSpec& parallel);
void set_schedule(const ScoreCells& row, ParallelSpec& parallel);

/// nanotron's partition: layers and the head go to the current stage until it exceeds its share of the total cost
/// (weights of a block), the next one then starts.
std::vector<std::int64_t> layers_by_cost(const Plan& plan);

/// Recomputes every layer, none, selectively, or `layers` of each stage. Throws RuleError for another text.
void set_recompute(Plan& plan, const std::string& cell);

}  // namespace reckon
