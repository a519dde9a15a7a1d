#include "plan/lossy_change.h"
#include "report/checked_json.h"
#include "report/explanation_report.h"

namespace reckon {

namespace {

Json document(const char* about) {
  return {{"schema", "reckon.explanation/1"}, {"about", about}};
}

Json optional_bytes(const std::optional<Bytes>& bytes) {
  return bytes ? Json(bytes->value) : Json(nullptr);
}

Json change_json(const PlanChange& change) {
  return {{"overrides", change.overrides},
          {"fits", change.fits},
          {"step_seconds", change.step.value},
          {"need_bytes", change.need.value},
          {"changes_gradients", changes_gradients(change.overrides.front())}};
}

std::string written(const Json& json) {
  return document_text(json);
}

}  // namespace

std::string explanation_json(const SizeExplanation& explanation) {
  Json json = document("size");
  const OutOfMemoryLine& line = explanation.line;
  json["asked_bytes"] = line.asked.value;
  json["tolerance_bytes"] = line.tolerance.value;
  json["capacity_bytes"] = optional_bytes(line.capacity);
  json["free_bytes"] = optional_bytes(line.free);
  json["allocated_bytes"] = optional_bytes(line.allocated);
  json["cached_bytes"] = optional_bytes(line.cached);
  json["matches"] = Json::array();
  for (const SizeMatch& match : explanation.matches)
    json["matches"].push_back({{"tensor", match.tensor.name},
                               {"form", match.tensor.form},
                               {"where", match.tensor.where},
                               {"bytes", match.tensor.bytes.value},
                               {"whole", match.tensor.whole},
                               {"rounded", match.rounded},
                               {"error", match.error}});
  json["remarks"] = explanation.remarks;
  return written(json);
}

std::string explanation_json(const PlanExplanation& explanation) {
  Json json = document("plan");
  const Verdict& verdict = explanation.profile.verdict;
  json["fits"] = verdict.fits;
  json["need_bytes"] = verdict.need.value;
  json["limit_bytes"] = verdict.limit.value;
  json["breaks"] = verdict.breaks ? Json(*verdict.breaks) : Json(nullptr);
  json["step_seconds"] = explanation.profile.step.seconds.value;
  json["bound_by"] = explanation.bound_by;
  json["savings"] = Json::array();
  for (const TimeSaving& saving : explanation.savings)
    json["savings"].push_back({{"component", saving.component}, {"seconds", saving.saved.value}});
  json["changes"] = Json::array();
  for (const PlanChange& change : explanation.changes) json["changes"].push_back(change_json(change));
  json["smallest"] = nullptr;
  if (explanation.smallest) {
    json["smallest"] = change_json(*explanation.smallest);
    json["smallest"]["devices"] = explanation.smallest_devices;
  }
  json["devices_tried"] = explanation.devices_tried;
  return written(json);
}

std::string explanation_json(const DifferenceExplanation& explanation) {
  Json json = document("difference");
  json["first"] = {{"plan", explanation.first_name},
                   {"step_seconds", explanation.first.step.seconds.value},
                   {"tokens", explanation.first.step.tokens}};
  json["second"] = {{"plan", explanation.second_name},
                    {"step_seconds", explanation.second.step.seconds.value},
                    {"tokens", explanation.second.step.tokens}};
  json["scale"] = explanation.scale;
  json["rows"] = Json::array();
  for (const DifferenceRow& row : explanation.rows)
    json["rows"].push_back({{"component", row.component},
                            {"first_seconds", row.first.value},
                            {"second_seconds", row.second.value},
                            {"difference_seconds", (row.second - row.first).value}});
  json["keys"] = Json::array();
  for (const ChangedKey& key : explanation.keys)
    json["keys"].push_back({{"key", key.key}, {"first", key.first}, {"second", key.second}});
  return written(json);
}

}  // namespace reckon
