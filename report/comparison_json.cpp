#include "report/checked_json.h"
#include "report/compare_profiles.h"

namespace reckon {

namespace {

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

/// Bytes and calls are whole numbers and are written as such.
Json value_or_null(const std::optional<double>& number, Unit unit) {
  if (!number) return nullptr;
  if (unit == Unit::bytes || unit == Unit::calls) return static_cast<std::int64_t>(*number);
  return *number;
}

Json losses_json(const LossComparison& losses) {
  return {{"names", {losses.names.first, losses.names.second}},
          {"steps", losses.steps},
          {"values", {losses.first, losses.second}},
          {"final_steps", losses.final_steps},
          {"final", {losses.first_final, losses.second_final}},
          {"final_difference", losses.final_difference()},
          {"largest_difference", losses.largest_difference},
          {"largest_at", losses.largest_at},
          {"parts_at", losses.parts_at ? Json(*losses.parts_at) : Json(nullptr)}};
}

}  // namespace

std::string comparison_json(const ProfileComparison& comparison) {
  Json rows = Json::array();
  for (const ComparisonRow& row : comparison.rows) {
    rows.push_back({{"quantity", row.quantity},
                    {"predicted", value_or_null(row.predicted, row.unit)},
                    {"simulated", value_or_null(row.simulated, row.unit)},
                    {"measured", value_or_null(row.measured, row.unit)},
                    {"error", number_or_null(row.error)},
                    {"aspect", name_of(row.aspect)},
                    {"unit", name_of(row.unit)},
                    {"spread", number_or_null(row.spread)},
                    {"blame", number_or_null(row.blame)}});
  }
  Json worst = Json::object();
  for (const WorstRow& row : comparison.worst)
    worst[std::string(name_of(row.aspect))] = {{"quantity", row.quantity}, {"error", row.error}};
  Json document = {{"schema", "reckon.comparison/1"},
                   {"rows", rows},
                   {"worst", worst},
                   {"columns", comparison.columns},
                   {"remarks", comparison.remarks}};
  if (comparison.losses) document["losses"] = losses_json(*comparison.losses);
  return document_text(document);
}

}  // namespace reckon
