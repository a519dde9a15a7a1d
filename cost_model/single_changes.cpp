#include "cost_model/single_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "cost_model/memory.h"
#include "cost_model/predict.h"
#include "plan/choices.h"
#include "plan/errors.h"
#include "plan/load_plan.h"
#include "plan/lossy_change.h"
#include "plan/plan_schema.h"

namespace reckon {

namespace {

using Changes = std::vector<std::vector<std::string>>;

/// Twice and four times the degree over as many fewer replicas, and half of it.
void turn_degree(Changes& changes, const ParallelSpec& parallel, const char* key, std::int64_t degree) {
  std::vector<std::string> also;
  if (std::string_view(key) == "parallel.pipeline")
    also = {"parallel.layers_per_stage=auto", "activations.recompute_layers=auto", "activations.bits_by_stage=auto"};
  const auto add = [&](std::int64_t to, std::int64_t data) {
    std::vector<std::string> change = {fmt::format("parallel.data={}", data), fmt::format("{}={}", key, to)};
    change.insert(change.end(), also.begin(), also.end());
    changes.push_back(std::move(change));
  };
  for (const std::int64_t factor : {2, 4})
    if (parallel.data % factor == 0) add(factor * degree, parallel.data / factor);
  if (degree % 2 == 0) add(degree / 2, 2 * parallel.data);
}

void turn_micro_batch(Changes& changes, std::int64_t rows) {
  changes.push_back({fmt::format("batch.micro_batch={}", 2 * rows)});
  for (std::int64_t fewer = rows / 2; fewer >= 1; fewer /= 2)
    if (rows % fewer == 0) changes.push_back({fmt::format("batch.micro_batch={}", fewer)});
}

void turn_pipeline(Changes& changes, const ParallelSpec& parallel) {
  if (parallel.pipeline == 1) return;
  if (parallel.schedule != ScheduleKind::interleaved)
    changes.push_back({"parallel.schedule=interleaved", "parallel.chunks=2", "parallel.layers_per_stage=auto"});
  else changes.push_back({"parallel.schedule=1f1b", "parallel.chunks=1", "parallel.layers_per_stage=auto"});
}

Plan with(Plan plan, const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    find_plan_key(text.substr(0, equals))->set(parse_yaml(text.substr(equals + 1), text), plan);
  }
  return plan;
}

/// Nothing for what breaks a rule or does not fit.
std::optional<PlanChange> fitting(const Plan& plan, std::vector<std::string> overrides) {
  const Plan changed = with(plan, overrides);
  if (!check_plan(changed).empty()) return std::nullopt;
  try {
    const Plan resolved = resolve(changed);
    const Verdict verdict = memory_verdict(resolved, predict_memory(resolved));
    if (!verdict.fits) return std::nullopt;
    return PlanChange{std::move(overrides), true, predict(resolved).step.seconds, verdict.need};
  } catch (const RuleError&) {  // found by the prediction: a precision that the device does not have
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::vector<std::string>> single_changes(const Plan& plan) {
  Changes changes;
  for (const Choice<Recompute>& mode : choices(Recompute{}))
    if (mode.value != plan.activations.recompute)
      changes.push_back({fmt::format("activations.recompute={}", mode.name), "activations.recompute_layers=auto"});
  if (!plan.activations.recompute_layers.empty()) changes.push_back({"activations.recompute_layers=auto"});
  turn_micro_batch(changes, plan.batch.micro_batch);
  if (plan.parallel.data * plan.context() > 1)
    for (int zero = 0; zero <= 3; ++zero)
      if (zero != plan.parallel.zero) changes.push_back({fmt::format("parallel.zero={}", zero)});
  turn_degree(changes, plan.parallel, "parallel.tensor", plan.parallel.tensor);
  turn_degree(changes, plan.parallel, "parallel.pipeline", plan.parallel.pipeline);
  turn_degree(changes, plan.parallel, "parallel.ring", plan.parallel.ring);
  if (plan.parallel.tensor > 1) changes.push_back({fmt::format("parallel.sequence={}", !plan.parallel.sequence)});
  turn_pipeline(changes, plan.parallel);
  if (plan.kernels.loss != LossKernel::fused) changes.push_back({"kernels.loss=fused"});
  if (plan.kernels.loss != LossKernel::chunked) changes.push_back({"kernels.loss=chunked"});
  if (plan.kernels.attention != AttentionKernel::flash) changes.push_back({"kernels.attention=flash"});
  if (payload_bits(plan.activations.stored) >= 16)
    for (const char* format : {"int8", "int4"})
      changes.push_back({fmt::format("activations.stored={}", format), "activations.bits_by_stage=auto"});
  return changes;
}

std::vector<PlanChange> fitting_changes(const Plan& plan) {
  std::vector<PlanChange> changes;
  for (std::vector<std::string>& overrides : single_changes(plan))
    if (auto change = fitting(plan, std::move(overrides))) changes.push_back(std::move(*change));
  const auto order = [](const PlanChange& change) {
    return std::pair(changes_gradients(change.overrides.front()), change.step);
  };
  std::stable_sort(changes.begin(), changes.end(),
                   [&](const PlanChange& a, const PlanChange& b) { return order(a) < order(b); });
  return changes;
}

std::string nearest_fitting_change(const Plan& plan) {
  const std::vector<PlanChange> changes = fitting_changes(plan);
  return changes.empty() ? "" : fmt::format("{}", fmt::join(changes.front().overrides, " "));
}

}  // namespace reckon
