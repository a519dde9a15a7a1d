#include "cost_model/state_times.h"

#include <algorithm>

#include "cost_model/state_cost.h"
#include "plan/layer_ops.h"

namespace reckon {

std::array<WeightElements, 4> section_weights(const Plan& plan) {
  const SectionElements e = section_elements(plan.model, plan.parallel.tensor, plan.parallel.expert);
  const bool spread = plan.parallel.expert > 1;
  std::array<WeightElements, 4> weights;
  weights[static_cast<std::size_t>(Section::embedding)] = {e.embedding, 0};
  weights[static_cast<std::size_t>(Section::dense_layer)] = {e.dense_layer, 0};
  weights[static_cast<std::size_t>(Section::moe_layer)] = {e.moe_layer + (spread ? 0 : e.layer_experts),
                                                           spread ? e.layer_experts : 0};
  weights[static_cast<std::size_t>(Section::head)] = {e.head + (plan.parallel.pipeline > 1 ? e.tied_table : 0), 0};
  return weights;
}

StateTimes state_times(const Plan& plan) {
  const GroupLayouts layouts(plan);
  const SectionElements elements = section_elements(plan.model, plan.parallel.tensor, plan.parallel.expert);
  const std::int64_t last = plan.parallel.pipeline - 1;
  StateTimes times;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t stage = i == 2 ? last : std::min<std::int64_t>(static_cast<std::int64_t>(i), last);
    const LocalWeights weights = stage_weights(plan, elements, stage);
    const std::int64_t buckets = gradient_buckets(plan, weights);
    StateTimes::Stage& s = times.stages[i];
    s.reduce = gradient_reduce_time(plan, layouts, weights).value;
    s.buckets = static_cast<double>(std::max<std::int64_t>(1, buckets));
    s.optimizer = optimizer_time(plan, layouts, weights).value * plan.hardware.time.global_factor;
    if (plan.parallel.zero == 1 || plan.parallel.zero == 2)
      s.gather = parameter_gather_time(plan, layouts, weights, buckets).value;
  }
  const auto of_sections = section_weights(plan);
  for (std::size_t i = 0; i < 4 && plan.parallel.zero >= 2; ++i) {
    const LocalWeights weights{static_cast<double>(of_sections[i].shared), static_cast<double>(of_sections[i].experts)};
    times.section_reduce[i] = gradient_reduce_time(plan, layouts, weights).value;
    if (plan.parallel.zero >= 3) times.section_gather[i] = parameter_gather_time(plan, layouts, weights, 1).value;
  }
  times.tied_reduce = tied_table_time(plan, layouts, elements).value;
  return times;
}

}  // namespace reckon
