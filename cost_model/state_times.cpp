#include "cost_model/state_times.h"

#include <algorithm>

#include "cost_model/state_cost.h"

namespace reckon {

StateTimes state_times(const Plan& plan, const SectionWeights& sections) {
  const GroupLayouts layouts(plan);
  const std::int64_t last = plan.parallel.pipeline - 1;
  StateTimes times;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t stage = i == 2 ? last : std::min<std::int64_t>(static_cast<std::int64_t>(i), last);
    const WeightElements weights = stage_weights(sections, stage_sections(plan, stage));
    const Pieces buckets = gradient_buckets(plan, weights);
    StateTimes::Stage& s = times.stages[i];
    s.reduce = gradient_reduce_time(plan, layouts, weights, buckets).value;
    s.buckets = static_cast<double>(std::max<std::int64_t>(1, buckets.shared + buckets.experts));
    s.optimizer = optimizer_time(plan, weights).value * plan.hardware.time.global_factor;
    if (plan.parallel.zero == 1 || plan.parallel.zero == 2)
      s.gather = calls_time(plan, layouts, gather_calls(plan, weights, buckets)).value;
  }
  for (std::size_t i = 0; i < sections.size() && plan.parallel.zero >= 2; ++i) {
    times.section_reduce[i] = gradient_reduce_time(plan, layouts, sections[i]).value;
    if (plan.parallel.zero >= 3)
      times.section_gather[i] = calls_time(plan, layouts, gather_calls(plan, sections[i])).value;
  }
  times.tied_reduce = calls_time(plan, layouts, tied_table_calls(plan)).value;
  return times;
}

}  // namespace reckon
