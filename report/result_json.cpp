#include "report/result_json.h"

#include "report/checked_json.h"
#include "report/plan_json.h"

namespace reckon {

namespace {

Json ranked_plans(const std::vector<RankedPlan>& plans) {
  Json list = Json::array();
  for (const RankedPlan& plan : plans) {
    list.push_back({{"rank", plan.rank},
                    {"overrides", overrides_json(plan.overrides)},
                    {"step_seconds", plan.step.value},
                    {"memory_bytes", plan.memory.value},
                    {"tokens_per_second_per_device", plan.tokens_per_second_per_device},
                    {"mfu", plan.mfu},
                    {"fit_probability", plan.fit_probability}});
  }
  return list;
}

Json knob_steps(const std::vector<KnobStep>& knobs) {
  Json list = Json::array();
  for (const KnobStep& knob : knobs)
    list.push_back({{"change", knob.change},
                    {"fits", knob.fits},
                    {"step_seconds", knob.step.value},
                    {"memory_bytes", knob.memory.value},
                    {"illegal", knob.illegal}});
  return list;
}

}  // namespace

std::string search_json(const SearchResult& result) {
  Json rejected = Json::array();
  for (const Rejection& rejection : result.rejected)
    rejected.push_back({{"reason", rejection.reason}, {"count", rejection.count}, {"example", rejection.example}});
  const Json document = {{"schema", "reckon.search/1"},
                         {"enumerated", result.enumerated},
                         {"legal", result.legal},
                         {"fits", result.fits},
                         {"refused_by_slack", result.refused_by_slack},
                         {"memory_limit_bytes", result.memory_limit.value},
                         {"seconds", result.seconds.value},
                         {"plans_per_second", result.plans_per_second},
                         {"plans", ranked_plans(result.plans)},
                         {"pareto", ranked_plans(result.pareto)},
                         {"rejected", std::move(rejected)},
                         {"complete", result.complete},
                         {"bound_by", result.bound_by},
                         {"knobs", knob_steps(result.knobs)}};
  return document_text(document);
}

std::string reproduction_json(const ReproductionResult& result) {
  Json fitted = Json::array();
  for (const FittedConstant& constant : result.fitted)
    fitted.push_back({{"constant", constant.constant}, {"value", constant.value}, {"rows", constant.rows}});
  Json rows = Json::array();
  for (const ReproducedRow& row : result.rows) {
    rows.push_back({{"system", row.system},
                    {"published", row.published},
                    {"predicted", row.predicted},
                    {"error", row.error},
                    {"fitted", row.fitted}});
  }
  const Json document = {{"schema", "reckon.reproduction/1"},
                         {"paper", result.paper},
                         {"fitted", std::move(fitted)},
                         {"rows", std::move(rows)},
                         {"summary", result.summary}};
  return document_text(document);
}

}  // namespace reckon
