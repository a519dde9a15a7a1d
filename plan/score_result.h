// Predictions scored against measured runs (schema "reckon.score/1"). Filled by cost_model, printed by report.
// Errors are fractions: (predicted - measured) / measured. Empty = undefined.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// Errors of one quantity over a group.
struct ErrorStatistics {
  std::int64_t n = 0;
  std::optional<double> mape;           // mean |e|
  std::optional<double> bias;           // mean e
  std::optional<double> median_abs;     // median |e|
  std::optional<double> p95_abs;        // 95th percentile of |e|, linear interpolation
  std::optional<double> max_abs;        // max |e|
  std::optional<double> mape_unbiased;  // mean |r/g - 1|, r = predicted / measured, g its geometric mean
  std::optional<double> coverage;       // share of measured values inside the predicted 80 % interval
};

/// Means over the sets of plans that do the same work.
struct OrderStatistics {
  std::optional<double> spearman, kendall, regret_mean, regret_max;
  std::int64_t regret_groups = 0;
};

struct OutOfMemoryCounts {
  std::int64_t true_fit = 0, true_oom = 0, false_fit = 0, false_oom = 0, oom_picks = 0;
};

struct ScoreGroup {
  std::string group;
  std::map<std::string, std::string> assume;  // {"recompute", "none"} where a group is scored twice
  std::int64_t rows = 0, scored = 0;
  std::map<std::string, std::int64_t> skipped;      // reason -> rows
  std::map<std::string, std::int64_t> assumptions;  // column whose default was used -> rows
  std::int64_t unmeasured_time = 0, unmeasured_memory = 0, tflops_only = 0;
  ErrorStatistics step_time, memory;
  OrderStatistics order;
  OutOfMemoryCounts oom;
};

struct ScoredRow {
  std::int64_t row = 0;  // 1 = the first after the header
  std::string source_id, run_id, group;
  std::map<std::string, std::string> assume;
  std::string status = "scored";      // or "skipped"
  std::optional<std::string> reason;  // of a skipped row
  std::string message;                // of an unsupported one: why the plan is refused
  std::vector<std::string> assumptions;
  std::vector<std::pair<std::string, std::string>> plan;  // dotted plan key -> value as written in a plan file
  std::optional<double> measured_step_seconds, measured_tokens_per_second_per_device;
  std::optional<std::int64_t> measured_memory_bytes;
  std::string measured_outcome;  // "ok" or "oom"
  std::optional<double> predicted_step_seconds, predicted_tokens_per_second_per_device;
  std::optional<std::int64_t> predicted_memory_bytes, predicted_need_bytes, predicted_limit_bytes;
  std::string predicted_outcome;
  std::optional<double> step_time_error, memory_error;
};

struct ScoreResult {
  std::string file;
  std::int64_t rows_read = 0, rows_scored = 0;
  std::vector<std::string> overrides;  // "fill:seq_len=8192", "map:gpu:H100=H100-SXM", "plan:memory.limit=70GiB"
  std::vector<ScoreGroup> groups;      // in file order
  std::vector<ScoredRow> rows;         // in file order
};

}  // namespace reckon
