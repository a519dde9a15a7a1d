#include "report/simulation_json.h"

#include "report/checked_json.h"
#include "report/profile_json.h"

namespace reckon {

namespace {

Json critical_path(const std::vector<TimeComponent>& path) {
  Json rows = Json::array();
  for (const TimeComponent& row : path) rows.push_back({{"component", row.component}, {"seconds", row.seconds.value}});
  return rows;
}

Json savings(const std::vector<Saving>& savings) {
  Json rows = Json::array();
  for (const Saving& row : savings)
    rows.push_back(
        {{"component", row.component}, {"step_seconds", row.step.value}, {"saved_seconds", row.saved.value}});
  return rows;
}

Json samples(const std::vector<Seconds>& sorted) {
  return {{"count", sorted.size()},
          {"least", sorted.front().value},
          {"p10", quantile(sorted, 0.1).value},
          {"p50", quantile(sorted, 0.5).value},
          {"p90", quantile(sorted, 0.9).value},
          {"most", sorted.back().value}};
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json refused(const RefusedAllocation& allocation) {
  return {{"stage", allocation.stage},
          {"rank", allocation.rank},
          {"op", or_null(allocation.op)},
          {"category", name_of(allocation.category)},
          {"micro_batch", or_null(allocation.micro_batch)},
          {"layer", or_null(allocation.layer)},
          {"seconds", allocation.time.value},
          {"asked_bytes", allocation.asked.value},
          {"allocated_bytes", allocation.allocated.value},
          {"reserved_bytes", allocation.reserved.value},
          {"limit_bytes", allocation.limit.value},
          {"communicator_bytes", allocation.communicators.value}};
}

}  // namespace

std::string simulation_json(const StepProfile& profile, const SimulationDetails& details) {
  Json document = Json::parse(profile_json(profile));
  Json& simulation = document["simulation"];
  simulation["events"] = details.events;
  simulation["simulated_ranks"] = details.simulated_ranks;
  simulation["step_samples"] = details.step_samples.empty() ? Json(nullptr) : samples(details.step_samples);
  simulation["critical_path"] = critical_path(details.critical_path);
  simulation["savings"] = savings(details.savings);
  simulation["out_of_memory"] = details.out_of_memory ? refused(*details.out_of_memory) : Json(nullptr);
  return document_text(document);
}

}  // namespace reckon
