#include <algorithm>
#include <exception>

#include "cost_model/score_cells.h"
#include "plan/errors.h"
#include "plan/pipeline_schedule.h"

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
  const std::vector<std::int64_t> by_virtual_stage = layers_per_virtual_stage(plan);
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    std::int64_t all = 0;
    for (std::int64_t v = stage; v < plan.virtual_stages(); v += plan.parallel.pipeline)
      all += by_virtual_stage[static_cast<std::size_t>(v)];
    activations.recompute_layers.push_back(layers ? std::min(*layers, all) : all);
  }
}

}  // namespace reckon
