#include "report/plan_difference.h"

#include <fmt/format.h>

#include <cmath>

#include "report/checked_json.h"
#include "report/format_quantity.h"

namespace reckon {

namespace {

constexpr std::size_t kLongestValue = 16;

std::string shortened(const std::string& text) {
  return text.size() <= kLongestValue ? text : text.substr(0, kLongestValue - 3) + "...";
}

Cell signed_cell(double amount, const std::string& text) {
  if (amount == 0) return "0";
  return Cell(amount > 0 ? "+" + text : text, amount > 0 ? Paint::warning : Paint::good);
}

Cell step_cell(const std::optional<Seconds>& step) {
  return step ? signed_cell(step->value, with_unit(*step)) : Cell("-");
}

Cell memory_cell(const std::optional<Bytes>& memory) {
  return memory ? signed_cell(static_cast<double>(memory->value), with_unit(*memory)) : Cell("-");
}

void add_outcome(Table& table, const char* place, const PlanOutcome& outcome) {
  table.add({fmt::format("{} plan", place), "", "", with_unit(outcome.step), with_unit(outcome.memory),
             Cell(outcome.fits ? "fits" : "does not fit", outcome.fits ? Paint::good : Paint::bad)});
}

Json outcome_json(const PlanOutcome& outcome) {
  return {{"name", outcome.name},
          {"step_seconds", outcome.step.value},
          {"memory_bytes", outcome.memory.value},
          {"fits", outcome.fits}};
}

}  // namespace

std::string difference_text(const PlanDifference& difference, const TextStyle& style) {
  Table table({"changed key", "from", "to", "step", "memory", ""}, {true, true, true, false, false, true});
  add_outcome(table, "first", difference.from);
  for (const KeyEffect& row : difference.rows)
    table.add({row.key, shortened(row.from), shortened(row.to), step_cell(row.step), memory_cell(row.memory),
               Cell(row.note, Paint::dim)});
  add_outcome(table, "second", difference.to);
  const double change = difference.to.step / difference.from.step - 1;
  return fmt::format("first: {}, second: {}\n\n{}\nThe second plan takes {} of step time and {} of memory.\n",
                     difference.from.name, difference.to.name, table.text(style), signed_percent(change),
                     signed_percent(difference.to.memory / difference.from.memory - 1));
}

std::string difference_json(const PlanDifference& difference) {
  Json rows = Json::array();
  for (const KeyEffect& row : difference.rows)
    rows.push_back({{"key", row.key},
                    {"from", row.from},
                    {"to", row.to},
                    {"seconds", row.step ? Json(row.step->value) : Json()},
                    {"bytes", row.memory ? Json(row.memory->value) : Json()},
                    {"note", row.note}});
  const Json document = {{"schema", "reckon.plan_difference/1"},
                         {"from", outcome_json(difference.from)},
                         {"to", outcome_json(difference.to)},
                         {"rows", std::move(rows)}};
  return document_text(document);
}

}  // namespace reckon
