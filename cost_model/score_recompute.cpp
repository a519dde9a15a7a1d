#include <algorithm>
#include <exception>

#include "cost_model/score_cells.h"
#include "plan/errors.h"
#include "plan/stage_sections.h"

namespace reckon {

void set_recompute(Plan& plan, const std::string& cell) {
  ActivationSpec& activations = plan.activations;
  activations.recompute_layers.clear();
  if (cell == "none") {
    activations.recompute = Recompute::none;
    return;
  }
  std::optional<std::int64_t> layers;
  if (cell == "selective") {
    activations.recompute = Recompute::selective;
  } else {
    activations.recompute = Recompute::full;
    if (cell != "full") {
      std::size_t end = 0;
      try {
        layers = std::stoll(cell, &end);
        if (cell.substr(end) == " layers") end = cell.size();
      } catch (const std::exception&) {
        end = 0;
      }
      if (end == 0 || end != cell.size() || *layers < 0) {
        throw RuleError({{"recompute '" + cell + "' is not one of none, selective, full, 'N layers'",
                          {},
                          0,
                          0,
                          "activations.recompute"}});
      }
    }
  }
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    const std::int64_t all = stage_layers(plan, stage);
    activations.recompute_layers.push_back(layers ? std::min(*layers, all) : all);
  }
}

}  // namespace reckon
