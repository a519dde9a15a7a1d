#include "cost_model/predict.h"

#include <fmt/format.h>

#include <cmath>

#include "cost_model/assumptions.h"
#include "cost_model/estimate_op_times.h"
#include "cost_model/gemm_cost.h"
#include "cost_model/intervals.h"
#include "cost_model/memory.h"
#include "cost_model/model_flops.h"
#include "cost_model/step_time.h"
#include "cost_model/traffic.h"
#include "plan/errors.h"
#include "plan/parameters.h"
#include "plan/step_documents.h"

namespace reckon {

namespace {

StepSummary step_summary(const Plan& plan, const StepTime& time, const AttentionWork& work, double useful_tokens) {
  StepSummary step;
  step.seconds = time.total;
  const double factor = interval_factor(step_time_deviation(plan, time.components));
  step.interval_low = time.total * (1.0 / factor);
  step.interval_high = time.total * factor;
  step.tokens = plan.batch.global_batch * plan.batch.sequence_length;
  step.useful_tokens = std::llround(useful_tokens);
  const auto devices = static_cast<double>(plan.world_size());
  step.tokens_per_second_per_device = static_cast<double>(step.tokens) / (time.total.value * devices);
  step.useful_tokens_per_second_per_device = static_cast<double>(step.useful_tokens) / (time.total.value * devices);
  step.model_flops = model_flops(plan, work);
  const double peak_flops = device_peak(plan.hardware, plan.precision.compute).value * devices * time.total.value;
  step.mfu = step.model_flops.value / peak_flops;
  step.hfu = (step.model_flops + recomputed_flops(plan, work)).value / peak_flops;
  step.bubble_fraction = time.bubble_fraction;
  return step;
}

/// Figures of hardware that are out of all proportion make times that are no prediction.
void require_possible(Seconds step) {
  constexpr double kLongest = 1e12;  // 30,000 years
  if (step.value > 0 && step.value < kLongest) return;
  throw RuleError(
      {{fmt::format("the step would take {:.3g} s, which no step takes; look at the figures of hardware", step.value),
        {},
        0,
        0,
        "hardware"}});
}

}  // namespace

StepProfile predict(const Plan& resolved) {
  StepProfile profile;
  profile.source = ProfileSource::predicted;
  profile.plan = resolved;
  profile.world_size = resolved.world_size();
  profile.parameters = count_parameters(resolved.model);
  profile.active_parameters = count_active_parameters(resolved.model);

  const DocumentWork documents = planned_documents(resolved);
  const AttentionWork work = slowest_attention(documents);
  profile.packing = documents.packing;
  const OpTimes times = estimate_op_times(resolved, documents);
  const StepTime time = step_time(resolved, times);
  require_possible(time.total);
  profile.step = step_summary(resolved, time, work, documents.useful_tokens);
  profile.time = time.components;
  profile.traffic = step_traffic(resolved, times);
  profile.stages = predict_memory(resolved, work);
  profile.verdict = memory_verdict(resolved, work, profile.stages);
  profile.verdict.probability =
      fit_probability(profile.verdict.need, profile.verdict.limit, memory_deviation(resolved));
  profile.assumptions = assumptions(resolved, times, documents);
  profile.warnings = warnings(profile);
  return profile;
}

}  // namespace reckon
