#include "cost_model/score_summary.h"

namespace reckon {

namespace {

OrderStatistics order_of(const std::vector<Scored>& rows) {
  std::map<std::string, std::map<std::string, std::vector<const Scored*>>> sets;
  for (const Scored& row : rows)
    if (row.compared.time) sets[row.set][row.plan_text].push_back(&row);
  std::vector<std::vector<PlanTimes>> merged;
  for (const auto& [set, plans] : sets) {
    std::vector<PlanTimes> times;
    for (const auto& [text, repeats] : plans) {
      std::vector<double> measured;
      for (const Scored* row : repeats) measured.push_back(row->compared.time->measured);
      times.push_back({repeats.front()->compared.time->predicted, median(measured)});
    }
    merged.push_back(std::move(times));
  }
  return order_statistics(merged);
}

OutOfMemoryCounts out_of_memory(const std::vector<Scored>& rows) {
  OutOfMemoryCounts counts;
  std::map<std::string, const Scored*> fastest;
  for (const Scored& row : rows) {
    const bool ok = row.record.measured_outcome != "oom", fits = row.record.predicted_outcome == "ok";
    ++(ok ? (fits ? counts.true_fit : counts.false_oom) : (fits ? counts.false_fit : counts.true_oom));
    if (!fits) continue;
    const Scored*& best = fastest[row.set];
    if (best == nullptr || *row.record.predicted_step_seconds < *best->record.predicted_step_seconds) best = &row;
  }
  for (const auto& [set, row] : fastest) counts.oom_picks += row->record.measured_outcome == "oom" ? 1 : 0;
  return counts;
}

}  // namespace

ScoreGroup group_summary(const std::string& name, std::size_t count, const std::map<std::string, std::string>& assume,
                         const std::vector<Scored>& rows, const std::vector<ScoredRow>& skipped) {
  ScoreGroup result;
  result.group = name;
  result.assume = assume;
  result.rows = static_cast<std::int64_t>(count);
  result.scored = static_cast<std::int64_t>(rows.size());
  for (const ScoredRow& row : skipped) ++result.skipped[*row.reason];
  std::vector<Comparison> times, memories;
  for (const Scored& row : rows) {
    for (const std::string& column : row.record.assumptions) ++result.assumptions[column];
    if (row.compared.time) times.push_back(*row.compared.time);
    else ++(row.compared.tflops_only ? result.tflops_only : result.unmeasured_time);
    if (row.compared.memory) memories.push_back(*row.compared.memory);
    else ++result.unmeasured_memory;
  }
  result.step_time = error_statistics(times);
  result.memory = error_statistics(memories);
  result.order = order_of(rows);
  result.oom = out_of_memory(rows);
  return result;
}

}  // namespace reckon
