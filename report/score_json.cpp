#include "report/plan_json.h"
#include "report/result_json.h"

namespace reckon {

namespace {

template <class Number>
Json or_null(const std::optional<Number>& number) {
  return number ? Json(*number) : Json(nullptr);
}

/// nlohmann writes an empty map as an array or null depending on how it is made; a JSON object is meant here.
template <class Value>
Json object_of(const std::map<std::string, Value>& values) {
  Json object = Json::object();
  for (const auto& [key, value] : values) object[key] = value;
  return object;
}

Json statistics(const ErrorStatistics& errors) {
  return {{"n", errors.n},
          {"mape", or_null(errors.mape)},
          {"bias", or_null(errors.bias)},
          {"median_abs", or_null(errors.median_abs)},
          {"p95_abs", or_null(errors.p95_abs)},
          {"max_abs", or_null(errors.max_abs)},
          {"mape_unbiased", or_null(errors.mape_unbiased)},
          {"coverage", or_null(errors.coverage)}};
}

Json group_json(const ScoreGroup& group) {
  Json step_time = statistics(group.step_time);
  step_time.update({{"spearman", or_null(group.order.spearman)},
                    {"kendall", or_null(group.order.kendall)},
                    {"regret_mean", or_null(group.order.regret_mean)},
                    {"regret_max", or_null(group.order.regret_max)},
                    {"regret_groups", group.order.regret_groups}});
  const Json unmeasured = {
      {"time", group.unmeasured_time}, {"memory", group.unmeasured_memory}, {"tflops_only", group.tflops_only}};
  const Json oom = {{"true_fit", group.oom.true_fit},
                    {"true_oom", group.oom.true_oom},
                    {"false_fit", group.oom.false_fit},
                    {"false_oom", group.oom.false_oom},
                    {"oom_picks", group.oom.oom_picks}};
  return {{"group", group.group},
          {"assume", object_of(group.assume)},
          {"rows", group.rows},
          {"scored", group.scored},
          {"skipped", object_of(group.skipped)},
          {"assumptions", object_of(group.assumptions)},
          {"unmeasured", unmeasured},
          {"step_time", std::move(step_time)},
          {"memory", statistics(group.memory)},
          {"oom", oom}};
}

Json row_json(const ScoredRow& row) {
  const Json measured = {{"step_seconds", or_null(row.measured_step_seconds)},
                         {"tokens_per_second_per_device", or_null(row.measured_tokens_per_second_per_device)},
                         {"memory_bytes", or_null(row.measured_memory_bytes)},
                         {"outcome", row.measured_outcome}};
  const Json predicted = {{"step_seconds", or_null(row.predicted_step_seconds)},
                          {"tokens_per_second_per_device", or_null(row.predicted_tokens_per_second_per_device)},
                          {"memory_bytes", or_null(row.predicted_memory_bytes)},
                          {"need_bytes", or_null(row.predicted_need_bytes)},
                          {"limit_bytes", or_null(row.predicted_limit_bytes)},
                          {"outcome", row.predicted_outcome}};
  return {{"row", row.row},
          {"source_id", row.source_id},
          {"run_id", row.run_id},
          {"group", row.group},
          {"assume", object_of(row.assume)},
          {"status", row.status},
          {"reason", or_null(row.reason)},
          {"message", row.message},
          {"assumptions", row.assumptions},
          {"plan", nested_overrides_json(row.plan)},
          {"measured", measured},
          {"predicted", predicted},
          {"error", {{"step_time", or_null(row.step_time_error)}, {"memory", or_null(row.memory_error)}}}};
}

}  // namespace

std::string score_json(const ScoreResult& result, bool with_rows) {
  Json groups = Json::array();
  for (const ScoreGroup& group : result.groups) groups.push_back(group_json(group));
  Json document = {{"schema", "reckon.score/1"},    {"file", result.file},
                   {"rows_read", result.rows_read}, {"rows_scored", result.rows_scored},
                   {"overrides", result.overrides}, {"groups", std::move(groups)}};
  if (with_rows) {
    Json rows = Json::array();
    for (const ScoredRow& row : result.rows) rows.push_back(row_json(row));
    document["rows"] = std::move(rows);
  }
  return document_text(document);
}

}  // namespace reckon
