#include "report/write_budget.h"

#include <fmt/format.h>

#include "report/format_quantity.h"

namespace reckon {

namespace {

Json point_json(const BudgetPoint& point) {
  return {{"name", point.name},
          {"fits", point.fits},
          {"memory_bytes", point.memory.value},
          {"step_seconds", point.step.value},
          {"gradient_error", point.gradient_error},
          {"cost_seconds", point.cost}};
}

Json points_json(const std::vector<BudgetPoint>& points) {
  Json list = Json::array();
  for (const BudgetPoint& point : points) list.push_back(point_json(point));
  return list;
}

void add_row(Table& table, const BudgetPoint& point) {
  table.add({point.name,
             with_unit(point.memory),
             with_unit(point.step),
             fmt::format("{:.4f}", point.gradient_error),
             with_unit(Seconds(point.cost)),
             {point.fits ? "yes" : "no", point.fits ? Paint::good : Paint::bad}});
}

}  // namespace

Json budget_json(const BudgetResult& budget) {
  return {{"limit_bytes", budget.limit.value},
          {"error_weight", budget.error_weight},
          {"unlimited_step_seconds", budget.unlimited.value},
          {"chosen", point_json(budget.chosen)},
          {"by_stage", budget.by_stage},
          {"references", points_json(budget.references)},
          {"pareto", points_json(budget.pareto)},
          {"seconds_per_gib", budget.seconds_per_gib ? Json(*budget.seconds_per_gib) : Json()}};
}

std::string budget_text(const BudgetResult& budget, const TextStyle& style) {
  std::string text = fmt::format("activation budget: {} a rank; cost = step + {:g} x {} x gradient error\n",
                                 with_unit(budget.limit), budget.error_weight, with_unit(budget.unlimited));
  for (std::size_t stage = 0; stage < budget.by_stage.size(); ++stage)
    text += wrapped(fmt::format("stage {}: {}", stage, budget.by_stage[stage])) + "\n";
  Table chosen({"policy", "memory", "step", "gradient error", "cost", "fits"});
  add_row(chosen, budget.chosen);
  for (const BudgetPoint& point : budget.references) add_row(chosen, point);
  text += "\n" + chosen.text(style);
  if (!budget.pareto.empty()) {
    Table front({"Pareto set (first stage's policy)", "memory", "step", "gradient error", "cost", "fits"});
    for (const BudgetPoint& point : budget.pareto) add_row(front, point);
    text += "\n" + front.text(style);
  }
  if (!budget.seconds_per_gib) return text + "\nno policy fits into a twentieth less memory\n";
  return text + fmt::format("\na GiB less a rank would cost {} a step\n", with_unit(Seconds(*budget.seconds_per_gib)));
}

}  // namespace reckon
