#include "cost_model/score.h"

#include <algorithm>
#include <set>
#include <thread>

#include "cost_model/in_parallel.h"
#include "cost_model/score_cells.h"
#include "cost_model/score_summary.h"
#include "plan/errors.h"

namespace reckon {

namespace {

/// Rows of one text do the same work.
std::string set_of(const CsvTable& table, std::size_t row) {
  std::string text;
  for (const char* column : {"source_id", "model", "n_layers", "hidden", "n_heads", "seq_len", "gpu", "gpu_mem_gib",
                             "gpus", "global_batch", "precision", "attention"})
    text += table.cell(row, column) + "|";
  return text;
}

std::string text_of(const std::vector<std::pair<std::string, std::string>>& described, const Plan& plan) {
  std::string text;
  for (const auto& [key, value] : described) text += key + "=" + value + " ";
  for (const std::int64_t layers : plan.activations.recompute_layers) text += std::to_string(layers) + ",";
  return text + std::string(plan.activations.recompute == Recompute::selective ? "selective" : "");
}

ScoredRow record_of(const CsvTable& table, std::size_t row, const std::string& group) {
  ScoredRow record;
  record.row = static_cast<std::int64_t>(row) + 1;
  record.source_id = table.cell(row, "source_id");
  record.run_id = table.cell(row, "run_id");
  record.group = group;
  record.measured_outcome = table.cell(row, "outcome").empty() ? "ok" : table.cell(row, "outcome");
  return record;
}

/// One group before the choice of an assumption.
struct RowGroup {
  std::string name;
  std::vector<std::size_t> rows;
  bool unknown_recompute = false;
};

std::vector<RowGroup> group_rows(const CsvTable& table, const std::string& column) {
  std::vector<RowGroup> groups;
  std::map<std::string, std::size_t> by_name;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string& name = table.cell(row, column);
    const auto [entry, added] = by_name.emplace(name, groups.size());
    if (added) groups.push_back({name, {}, false});
    groups[entry->second].rows.push_back(row);
  }
  return groups;
}

std::vector<std::string> echoed(const ScoreOptions& options) {
  std::vector<std::string> texts;
  for (const auto& [column, value] : options.fill) texts.push_back("fill:" + column + "=" + value);
  for (const auto& [column, old_value, new_value] : options.map)
    texts.push_back("map:" + column + ":" + old_value + "=" + new_value);
  for (const std::string& text : options.overrides) texts.push_back("plan:" + text);
  return texts;
}

int cores() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

/// Scores the rows of a group under one assumption on recomputation ("" where every row says).
class GroupScorer {
 public:
  GroupScorer(const CsvTable& table, const ScoreOptions& options, const ScoreLibrary& library)
      : table_(table), options_(options), library_(library) {}

  void run(RowGroup group, ScoreResult& result) {
    std::vector<RowPlan> plans(group.rows.size());
    in_parallel(plans.size(), cores(),
                [&](std::size_t i, int) { plans[i] = row_plan(table_, group.rows[i], library_); });
    group.unknown_recompute = std::any_of(
        plans.begin(), plans.end(), [](const RowPlan& plan) { return plan.skipped.empty() && plan.unknown_recompute; });
    for (const std::string& assumed : assumptions(group)) score_once(group, plans, assumed, result);
  }

 private:
  std::vector<std::string> assumptions(const RowGroup& group) const {
    if (!group.unknown_recompute) return {""};
    if (options_.recompute == AssumedRecompute::none) return {"none"};
    if (options_.recompute == AssumedRecompute::full) return {"full"};
    return {"none", "full"};
  }

  const ScoreSource& source_of(std::size_t row) const {
    static const ScoreSource unknown;
    const auto found = library_.sources.find(table_.cell(row, "source_id"));
    return found == library_.sources.end() ? unknown : found->second;
  }

  void score_once(const RowGroup& group, const std::vector<RowPlan>& plans, const std::string& assumed,
                  ScoreResult& result) {
    std::vector<Scored> rows(plans.size());
    in_parallel(rows.size(), cores(), [&](std::size_t i, int) { rows[i] = score_row(group, i, plans[i], assumed); });
    std::vector<Scored> scored;
    std::vector<ScoredRow> skipped;
    for (Scored& row : rows) {
      result.rows.push_back(row.record);
      if (row.record.status == "skipped") skipped.push_back(std::move(row.record));
      else scored.push_back(std::move(row));
    }
    result.groups.push_back(group_summary(group.name, group.rows.size(), assume(assumed), scored, skipped));
  }

  static std::map<std::string, std::string> assume(const std::string& assumed) {
    if (assumed.empty()) return {};
    return {{"recompute", assumed}};
  }

  Scored score_row(const RowGroup& group, std::size_t index, const RowPlan& plan, const std::string& assumed) const {
    const std::size_t row = group.rows[index];
    Scored one{set_of(table_, row), "", record_of(table_, row, group.name), {}};
    one.record.assume = assume(assumed);
    one.record.assumptions = plan.assumptions;
    const ScoredRow unscored = one.record;
    std::string reason = plan.skipped, message = plan.message;
    if (reason.empty()) reason = predict_row(row, plan, assumed, one, message);
    if (reason.empty()) return one;
    one.record = unscored;
    one.record.status = "skipped";
    one.record.reason = reason;
    one.record.message = message;
    return one;
  }

  /// The reason why there is no prediction, or an empty text.
  std::string predict_row(std::size_t index, const RowPlan& row, const std::string& assumed, Scored& scored,
                          std::string& message) const {
    Plan plan = row.plan;
    try {
      if (row.unknown_recompute) set_recompute(plan, assumed);
      scored.compared = compare_row(table_, index, row, plan, source_of(index), options_.tflops, scored.record);
      scored.record.plan = row.described;
      scored.plan_text = text_of(row.described, plan);
    } catch (const Error& error) {
      message = error.what();
      return "unsupported";
    }
    return "";
  }

  const CsvTable& table_;
  const ScoreOptions& options_;
  const ScoreLibrary& library_;
};

}  // namespace

ScoreResult score(CsvTable table, const std::string& file, const ScoreOptions& options, const ScoreLibrary& library) {
  for (const auto& [column, value] : options.fill) table.fill(column, value);
  for (const auto& [column, old_value, new_value] : options.map) table.map(column, old_value, new_value);
  const std::string by = !options.group_by.empty() ? options.group_by : table.has_column("bar") ? "bar" : "source_id";
  if (!table.has_column(by) && !options.group_by.empty())
    throw ConfigError({{"there is no column '" + by + "' to group by", file, 1, 0, {}}});
  ScoreResult result;
  result.file = file;
  result.rows_read = static_cast<std::int64_t>(table.rows());
  result.overrides = echoed(options);
  GroupScorer scorer(table, options, library);
  std::int64_t done = 0;
  for (const RowGroup& group : group_rows(table, by)) {
    scorer.run(group, result);
    done += static_cast<std::int64_t>(group.rows.size());
    const double share = static_cast<double>(done) / static_cast<double>(result.rows_read);
    if (options.progress) options.progress(share, done);
  }
  std::set<std::int64_t> rows;
  for (const ScoredRow& row : result.rows)
    if (row.status == "scored") rows.insert(row.row);
  result.rows_scored = static_cast<std::int64_t>(rows.size());
  if (rows.empty()) throw ConfigError({{"not one row could be scored; --rows lists the reasons", file, 0, 0, {}}});
  std::stable_sort(result.rows.begin(), result.rows.end(),
                   [](const ScoredRow& a, const ScoredRow& b) { return a.row < b.row; });
  return result;
}

ScoreResult score(const std::filesystem::path& file, const ScoreOptions& options, const ConfigPaths& paths) {
  ScoreLibrary library = score_library(paths);
  library.overrides = options.overrides;
  return score(CsvTable::read(file), file.string(), options, library);
}

}  // namespace reckon
