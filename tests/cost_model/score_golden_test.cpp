// A change that moves a prediction shows old and new numbers and fails here: golden files change only in a commit that
// says why. RECKON_UPDATE_GOLDEN=1 writes them anew.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

#include "cost_model/score.h"

namespace reckon {
namespace {

using Numbers = std::map<std::string, std::vector<std::pair<std::string, double>>>;  // line -> column, value

ConfigPaths paths() {
  ConfigPaths configs;
  configs.configs = std::string(RECKON_SOURCE_DIR) + "/configs";
  return configs;
}

std::string golden(const std::string& name) {
  return std::string(RECKON_SOURCE_DIR) + "/tests/golden/" + name;
}

void write(const std::string& file, const Numbers& numbers) {
  std::ofstream out(file);
  out << "line";
  for (const auto& [column, value] : numbers.begin()->second) out << "," << column;
  out << "\n";
  for (const auto& [line, values] : numbers) {
    out << line;
    for (const auto& [column, value] : values) out << "," << fmt::format("{:.6g}", value);
    out << "\n";
  }
}

/// Every number within `relative` of the recorded one (and 5e-4 of metrics that are fractions).
void expect_recorded(const std::string& file, const Numbers& numbers, double relative) {
  if (std::getenv("RECKON_UPDATE_GOLDEN") != nullptr) write(file, numbers);
  const CsvTable recorded = CsvTable::read(file);
  std::map<std::string, std::size_t> rows;
  for (std::size_t row = 0; row < recorded.rows(); ++row) rows[recorded.cell(row, "line")] = row;
  EXPECT_EQ(rows.size(), numbers.size());
  for (const auto& [line, values] : numbers) {
    const auto found = rows.find(line);
    if (found == rows.end()) {
      ADD_FAILURE() << line << " is new";
      continue;
    }
    for (const auto& [column, value] : values) {
      const double old_value = recorded.number(found->second, column).value_or(NAN);
      EXPECT_LE(std::abs(value - old_value), relative * std::abs(old_value) + 5e-4)
          << line << ", " << column << ": was " << old_value << ", is " << value;
    }
  }
}

/// Public runs of six sources, each row with its source: time and memory of every prediction.
TEST(ScoreGolden, PredictionsOfThirtyFivePublicRunsAreAsRecorded) {
  const ScoreResult result =
      score(CsvTable::read(golden("measured_runs.csv")), "measured_runs.csv", {}, score_library(paths()));
  Numbers numbers;
  for (const ScoredRow& row : result.rows) {
    ASSERT_EQ(row.status, "scored") << row.run_id << ": " << row.message;
    numbers[row.source_id + "/" + row.run_id] = {
        {"step_seconds", *row.predicted_step_seconds},
        {"memory_gib", static_cast<double>(*row.predicted_memory_bytes) / kGiB}};
  }
  EXPECT_EQ(numbers.size(), 35u);
  expect_recorded(golden("measured_runs_predicted.csv"), numbers, 1e-3);
}

/// The score table of all public runs, by source.
TEST(ScoreGolden, ScoreTableOfThePublicRunsIsAsRecorded) {
  const char* folder = std::getenv("RECKON_SHARED_DATA");
  if (folder == nullptr) GTEST_SKIP() << "RECKON_SHARED_DATA does not name the folder with measured/training_runs.csv";
  const ScoreResult result = score(std::string(folder) + "/measured/training_runs.csv", {}, paths());
  Numbers numbers;
  for (const ScoreGroup& group : result.groups) {
    if (group.step_time.n + group.memory.n == 0) continue;
    const std::string assume = group.assume.empty() ? "" : " recompute " + group.assume.begin()->second;
    const auto or_minus_one = [](const std::optional<double>& value) { return value.value_or(-1.0); };
    numbers[group.group + assume] = {{"scored", static_cast<double>(group.scored)},
                                     {"time_mape", or_minus_one(group.step_time.mape)},
                                     {"time_bias", or_minus_one(group.step_time.bias)},
                                     {"time_mape_unbiased", or_minus_one(group.step_time.mape_unbiased)},
                                     {"time_median_abs", or_minus_one(group.step_time.median_abs)},
                                     {"coverage", or_minus_one(group.step_time.coverage)},
                                     {"spearman", or_minus_one(group.order.spearman)},
                                     {"regret_mean", or_minus_one(group.order.regret_mean)},
                                     {"memory_mape", or_minus_one(group.memory.mape)},
                                     {"memory_bias", or_minus_one(group.memory.bias)}};
  }
  expect_recorded(golden("score_table.csv"), numbers, 1e-3);
}

}  // namespace
}  // namespace reckon
