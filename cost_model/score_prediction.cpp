#include "cost_model/score_prediction.h"

#include <algorithm>
#include <cmath>

#include "cost_model/gemm_cost.h"
#include "cost_model/intervals.h"
#include "cost_model/predict.h"
#include "plan/parameters.h"

namespace reckon {

namespace {

struct Prediction {
  double step_seconds = 0, low = 0, high = 0, memory = 0, memory_low = 0, memory_high = 0;
  std::int64_t need = 0, limit = 0;
  bool fits = true;
};

double reported_memory(const StepProfile& profile, const ScoreSource& source) {
  const auto total = [&](const StageProfile& stage) {
    const StageMemory& memory = stage.memory;
    switch (source.memory_total) {
      case MemoryTotal::peak_allocated: break;
      case MemoryTotal::peak_reserved:
        return static_cast<double>((memory.peak_allocated + memory.allocator_slack).value);
      case MemoryTotal::device_used: return static_cast<double>(memory.device_used.value);
    }
    return static_cast<double>(memory.peak_allocated.value);
  };
  if (profile.stages.empty()) return 0.0;
  if (source.memory_stage == MemoryStage::first) return total(profile.stages.front());
  if (source.memory_stage == MemoryStage::last) return total(profile.stages.back());
  double largest = 0.0;
  for (const StageProfile& stage : profile.stages) largest = std::max(largest, total(stage));
  return largest;
}

Prediction prediction(const Plan& plan, const ScoreSource& source) {
  const StepProfile profile = predict(resolve(plan));
  Prediction result;
  result.step_seconds = profile.step.seconds.value;
  result.low = profile.step.interval_low.value;
  result.high = profile.step.interval_high.value;
  result.memory = reported_memory(profile, source);
  const double spread = memory_interval_factor(profile.plan);
  result.memory_low = result.memory / spread;
  result.memory_high = result.memory * spread;
  result.need = profile.verdict.need.value;
  result.limit = profile.verdict.limit.value;
  result.fits = profile.verdict.fits;
  return result;
}

/// FLOPs of a step in the convention of a published TFLOP/s figure; all count the input table out.
double published_flops(const Plan& plan, TflopsConvention convention) {
  const ModelSpec& model = plan.model;
  const auto count = [](std::int64_t value) { return static_cast<double>(value); };
  const double tokens = count(plan.batch.global_batch) * count(plan.batch.sequence_length);
  const double s = count(plan.batch.sequence_length), h = count(model.hidden), l = count(model.layers),
               v = count(model.vocabulary);
  if (convention == TflopsConvention::megatron_hw)
    return 96.0 * tokens * l * h * h * (1.0 + s / (6.0 * h) + v / (16.0 * l * h));
  const double table = model.tied_head ? 0.0 : v * h;  // a tied table is the head's weight
  const double weights = count(count_active_parameters(model)) - table;
  return 6.0 * tokens * (weights + (convention == TflopsConvention::model_full ? 2.0 : 1.0) * l * h * s);
}

/// Measured seconds of a step, or nothing.
std::optional<double> measured_seconds(const CsvTable& table, std::size_t row, const RowPlan& plan,
                                       TflopsConvention convention) {
  const auto positive = [&](const char* column) -> std::optional<double> {
    const auto value = table.number(row, column);
    return value && *value > 0.0 ? value : std::nullopt;
  };
  if (const auto seconds = positive("step_time_s"); seconds && !plan.batch_is_assumed) return seconds;
  const auto devices = static_cast<double>(plan.plan.world_size());
  const double tokens = static_cast<double>(plan.plan.batch.global_batch * plan.plan.batch.sequence_length);
  if (const auto rate = positive("tokens_per_s_per_gpu")) return tokens / (*rate * devices);
  if (convention == TflopsConvention::none || plan.batch_is_assumed) return std::nullopt;
  if (const auto tflops = positive("tflops_per_gpu"))
    return published_flops(plan.plan, convention) / (*tflops * 1e12 * devices);
  if (const auto mfu = positive("mfu_pct")) {
    const double peak = device_peak(plan.plan.hardware, plan.plan.precision.compute).value;
    return published_flops(plan.plan, convention) / (*mfu * 0.01 * peak * devices);
  }
  return std::nullopt;
}

void fill_predicted(const Prediction& p, const Plan& plan, ScoredRow& record) {
  record.predicted_step_seconds = p.step_seconds;
  record.predicted_tokens_per_second_per_device =
      static_cast<double>(plan.batch.global_batch * plan.batch.sequence_length) /
      (p.step_seconds * static_cast<double>(plan.world_size()));
  record.predicted_memory_bytes = static_cast<std::int64_t>(p.memory);
  record.predicted_need_bytes = p.need;
  record.predicted_limit_bytes = p.limit;
  record.predicted_outcome = p.fits ? "ok" : "oom";
}

}  // namespace

RowComparison compare_row(const CsvTable& table, std::size_t index, const RowPlan& row, const Plan& plan,
                          const ScoreSource& source, TflopsConvention convention, ScoredRow& record) {
  const Prediction p = prediction(plan, source);
  fill_predicted(p, plan, record);
  RowComparison scored;
  if (const auto seconds = measured_seconds(table, index, row, convention)) {
    record.measured_step_seconds = *seconds;
    record.measured_tokens_per_second_per_device =
        static_cast<double>(row.plan.batch.global_batch * row.plan.batch.sequence_length) /
        (*seconds * static_cast<double>(row.plan.world_size()));
    scored.time = Comparison{p.step_seconds, *seconds, p.low <= *seconds && *seconds <= p.high};
    record.step_time_error = scored.time->error();
  } else {
    scored.tflops_only = table.number(index, "tflops_per_gpu") || table.number(index, "mfu_pct");
  }
  if (const auto gib = table.number(index, "peak_mem_gib"); gib && *gib > 0.0) {
    const double bytes = *gib * kGiB;
    record.measured_memory_bytes = static_cast<std::int64_t>(std::llround(bytes));
    scored.memory = Comparison{p.memory, bytes, p.memory_low <= bytes && bytes <= p.memory_high};
    record.memory_error = scored.memory->error();
  }
  return scored;
}

}  // namespace reckon
