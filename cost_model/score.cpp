#include "cost_model/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cost_model/gemm_cost.h"
#include "cost_model/intervals.h"
#include "cost_model/predict.h"
#include "cost_model/score_statistics.h"
#include "plan/errors.h"
#include "plan/parameters.h"

namespace reckon {

namespace {

struct Prediction {
  double step_seconds = 0, low = 0, high = 0, memory = 0, memory_low = 0, memory_high = 0;
  std::int64_t need = 0, limit = 0;
  bool fits = true;
};

/// One row under one assumption.
struct Scored {
  std::size_t row = 0;
  std::string group, set, plan_text;
  ScoredRow record;
  std::optional<Comparison> time, memory;
  bool tflops_only = false;
};

double reported_memory(const StepProfile& profile, const ScoreSource& source) {
  const auto total = [&](const StageProfile& stage) {
    const StageMemory& memory = stage.memory;
    switch (source.memory_total) {
      case MemoryTotal::peak_allocated: break;
      case MemoryTotal::peak_reserved:
        return static_cast<double>((memory.peak_allocated + memory.allocator_slack).value);
      case MemoryTotal::device_used: return static_cast<double>(memory.device_used.value);
    }
    return static_cast<double>(memory.peak_allocated.value);
  };
  if (profile.stages.empty()) return 0.0;
  if (source.memory_stage == MemoryStage::first) return total(profile.stages.front());
  if (source.memory_stage == MemoryStage::last) return total(profile.stages.back());
  double largest = 0.0;
  for (const StageProfile& stage : profile.stages) largest = std::max(largest, total(stage));
  return largest;
}

Prediction prediction(const Plan& plan, const ScoreSource& source) {
  const StepProfile profile = predict(resolve(plan));
  Prediction result;
  result.step_seconds = profile.step.seconds.value;
  result.low = profile.step.interval_low.value;
  result.high = profile.step.interval_high.value;
  result.memory = reported_memory(profile, source);
  const double spread = memory_interval_factor(profile.plan);
  result.memory_low = result.memory / spread;
  result.memory_high = result.memory * spread;
  result.need = profile.verdict.need.value;
  result.limit = profile.verdict.limit.value;
  result.fits = profile.verdict.fits;
  return result;
}

/// FLOPs of a step in the convention of a published TFLOP/s figure; all count the input table out.
double published_flops(const Plan& plan, TflopsConvention convention) {
  const ModelSpec& model = plan.model;
  const auto count = [](std::int64_t value) { return static_cast<double>(value); };
  const double tokens = count(plan.batch.global_batch) * count(plan.batch.sequence_length);
  const double s = count(plan.batch.sequence_length), h = count(model.hidden), l = count(model.layers),
               v = count(model.vocabulary);
  if (convention == TflopsConvention::megatron_hw)
    return 96.0 * tokens * l * h * h * (1.0 + s / (6.0 * h) + v / (16.0 * l * h));
  const double table = model.tied_head ? 0.0 : v * h;  // a tied table is the head's weight
  const double weights = count(count_active_parameters(model)) - table;
  return 6.0 * tokens * (weights + (convention == TflopsConvention::model_full ? 2.0 : 1.0) * l * h * s);
}

/// Measured seconds of a step, or nothing.
std::optional<double> measured_seconds(const CsvTable& table, std::size_t row, const RowPlan& plan,
                                       TflopsConvention convention) {
  const auto positive = [&](const char* column) -> std::optional<double> {
    const auto value = table.number(row, column);
    return value && *value > 0.0 ? value : std::nullopt;
  };
  if (const auto seconds = positive("step_time_s"); seconds && !plan.batch_is_assumed) return seconds;
  const auto devices = static_cast<double>(plan.plan.world_size());
  const double tokens = static_cast<double>(plan.plan.batch.global_batch * plan.plan.batch.sequence_length);
  if (const auto rate = positive("tokens_per_s_per_gpu")) return tokens / (*rate * devices);
  if (convention == TflopsConvention::none || plan.batch_is_assumed) return std::nullopt;
  if (const auto tflops = positive("tflops_per_gpu"))
    return published_flops(plan.plan, convention) / (*tflops * 1e12 * devices);
  if (const auto mfu = positive("mfu_pct")) {
    const double peak = device_peak(plan.plan.hardware, plan.plan.precision.compute).value;
    return published_flops(plan.plan, convention) / (*mfu * 0.01 * peak * devices);
  }
  return std::nullopt;
}

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

void fill_predicted(const Prediction& p, const Plan& plan, ScoredRow& record) {
  record.predicted_step_seconds = p.step_seconds;
  record.predicted_tokens_per_second_per_device =
      static_cast<double>(plan.batch.global_batch * plan.batch.sequence_length) /
      (p.step_seconds * static_cast<double>(plan.world_size()));
  record.predicted_memory_bytes = static_cast<std::int64_t>(p.memory);
  record.predicted_need_bytes = p.need;
  record.predicted_limit_bytes = p.limit;
  record.predicted_outcome = p.fits ? "ok" : "oom";
}

void compare(const CsvTable& table, const RowPlan& row, const Prediction& p, TflopsConvention convention,
             Scored& scored) {
  const std::size_t index = scored.row;
  ScoredRow& record = scored.record;
  if (const auto seconds = measured_seconds(table, index, row, convention)) {
    record.measured_step_seconds = *seconds;
    record.measured_tokens_per_second_per_device =
        static_cast<double>(row.plan.batch.global_batch * row.plan.batch.sequence_length) /
        (*seconds * static_cast<double>(row.plan.world_size()));
    scored.time = Comparison{p.step_seconds, *seconds, p.low <= *seconds && *seconds <= p.high};
    record.step_time_error = scored.time->error();
  } else {
    scored.tflops_only = table.number(index, "tflops_per_gpu") || table.number(index, "mfu_pct");
  }
  if (const auto gib = table.number(index, "peak_mem_gib"); gib && *gib > 0.0) {
    const double bytes = *gib * kGiB;
    record.measured_memory_bytes = static_cast<std::int64_t>(std::llround(bytes));
    scored.memory = Comparison{p.memory, bytes, p.memory_low <= bytes && bytes <= p.memory_high};
    record.memory_error = scored.memory->error();
  }
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

OrderStatistics order_of(const std::vector<Scored>& rows) {
  std::map<std::string, std::map<std::string, std::vector<const Scored*>>> sets;
  for (const Scored& row : rows)
    if (row.time) sets[row.set][row.plan_text].push_back(&row);
  std::vector<std::vector<PlanTimes>> merged;
  for (const auto& [set, plans] : sets) {
    std::vector<PlanTimes> times;
    for (const auto& [text, repeats] : plans) {
      std::vector<double> measured;
      for (const Scored* row : repeats) measured.push_back(row->time->measured);
      times.push_back({repeats.front()->time->predicted, median(measured)});
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

ScoreGroup summary(const RowGroup& group, const std::map<std::string, std::string>& assume,
                   const std::vector<Scored>& rows, const std::vector<ScoredRow>& skipped) {
  ScoreGroup result;
  result.group = group.name;
  result.assume = assume;
  result.rows = static_cast<std::int64_t>(group.rows.size());
  result.scored = static_cast<std::int64_t>(rows.size());
  for (const ScoredRow& row : skipped) ++result.skipped[*row.reason];
  std::vector<Comparison> times, memories;
  for (const Scored& row : rows) {
    for (const std::string& column : row.record.assumptions) ++result.assumptions[column];
    if (row.time) times.push_back(*row.time);
    else ++(row.tflops_only ? result.tflops_only : result.unmeasured_time);
    if (row.memory) memories.push_back(*row.memory);
    else ++result.unmeasured_memory;
  }
  result.step_time = error_statistics(times);
  result.memory = error_statistics(memories);
  result.order = order_of(rows);
  result.oom = out_of_memory(rows);
  return result;
}

std::vector<std::string> echoed(const ScoreOptions& options) {
  std::vector<std::string> texts;
  for (const auto& [column, value] : options.fill) texts.push_back("fill:" + column + "=" + value);
  for (const auto& [column, old_value, new_value] : options.map)
    texts.push_back("map:" + column + ":" + old_value + "=" + new_value);
  for (const std::string& text : options.overrides) texts.push_back("plan:" + text);
  return texts;
}

/// Scores the rows of a group under one assumption on recomputation ("" where every row says).
class GroupScorer {
 public:
  GroupScorer(const CsvTable& table, const ScoreOptions& options, const ScoreLibrary& library)
      : table_(table), options_(options), library_(library) {}

  void run(RowGroup group, ScoreResult& result) {
    std::map<std::size_t, RowPlan> plans;
    for (const std::size_t row : group.rows) {
      RowPlan plan = row_plan(table_, row, library_);
      group.unknown_recompute = group.unknown_recompute || (plan.skipped.empty() && plan.unknown_recompute);
      plans.emplace(row, std::move(plan));
    }
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

  void score_once(const RowGroup& group, const std::map<std::size_t, RowPlan>& plans, const std::string& assumed,
                  ScoreResult& result) {
    std::map<std::string, std::string> assume;
    if (!assumed.empty()) assume["recompute"] = assumed;
    std::vector<Scored> scored;
    std::vector<ScoredRow> skipped;
    for (const auto& [row, plan] : plans) {
      ScoredRow record = record_of(table_, row, group.name);
      record.assume = assume;
      record.assumptions = plan.assumptions;
      std::string reason = plan.skipped, message = plan.message;
      Scored one{row, group.name, set_of(table_, row), "", record, {}, {}, false};
      if (reason.empty()) reason = predict_row(plan, assumed, one, message);
      if (!reason.empty()) {
        record.status = "skipped";
        record.reason = reason;
        record.message = message;
        skipped.push_back(record);
        result.rows.push_back(record);
        continue;
      }
      result.rows.push_back(one.record);
      scored.push_back(std::move(one));
    }
    result.groups.push_back(summary(group, assume, scored, skipped));
  }

  /// The reason why there is no prediction, or an empty text.
  std::string predict_row(const RowPlan& row, const std::string& assumed, Scored& scored, std::string& message) const {
    Plan plan = row.plan;
    try {
      if (row.unknown_recompute) set_recompute(plan, assumed);
      const Prediction p = prediction(plan, source_of(scored.row));
      scored.record.plan = row.described;
      scored.plan_text = text_of(row.described, plan);
      fill_predicted(p, plan, scored.record);
      compare(table_, row, p, options_.tflops, scored);
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
