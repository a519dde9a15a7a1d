#include "cost_model/smallest_plan.h"

#include <fmt/format.h>

#include <vector>

#include "cost_model/memory.h"
#include "cost_model/predict.h"
#include "cost_model/stage_states.h"
#include "plan/load_plan.h"
#include "plan/parameters.h"

namespace reckon {

namespace {

/// 1, 2, 4, ... in a node, then nodes: one by one at first, later in steps of an eighth.
std::vector<std::int64_t> numbers_of_devices(std::int64_t per_node, std::int64_t most) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t devices = 1; devices < per_node && devices <= most; devices *= 2) numbers.push_back(devices);
  for (std::int64_t nodes = 1; nodes * per_node <= most; nodes += 1 + nodes / 8) numbers.push_back(nodes * per_node);
  return numbers;
}

Plan frugal(Plan plan) {
  plan.nodes = 0;
  plan.batch.micro_batch = 1;
  plan.activations.recompute = Recompute::full;
  plan.activations.recompute_layers.clear();
  plan.activations.bits_by_stage.clear();
  plan.parallel.layers_per_stage.clear();
  plan.parallel.schedule = ScheduleKind::one_forward_one_backward;
  plan.parallel.chunks = 1;
  plan.parallel.zero_group = 0;
  return plan;
}

std::vector<std::string> overrides_of(const Plan& plan, const Plan& from) {
  std::vector<std::string> texts = {fmt::format("parallel.data={}", plan.parallel.data),
                                    fmt::format("parallel.tensor={}", plan.parallel.tensor),
                                    fmt::format("parallel.pipeline={}", plan.parallel.pipeline),
                                    fmt::format("parallel.zero={}", plan.parallel.zero),
                                    "batch.micro_batch=1",
                                    "activations.recompute=full",
                                    "activations.recompute_layers=auto"};
  if (from.nodes != 0) texts.emplace_back("nodes=auto");
  if (!from.parallel.layers_per_stage.empty()) texts.emplace_back("parallel.layers_per_stage=auto");
  if (from.parallel.schedule != ScheduleKind::one_forward_one_backward)
    texts.emplace_back("parallel.schedule=1f1b"), texts.emplace_back("parallel.chunks=1");
  if (from.parallel.zero_group != 0) texts.emplace_back("parallel.zero_group=auto");
  if (from.parallel.sequence && plan.parallel.tensor == 1) texts.emplace_back("parallel.sequence=false");
  return texts;
}

std::optional<PlanChange> fitting(const Plan& plan, const Plan& from) {
  if (!check_plan(plan).empty()) return std::nullopt;
  const Plan resolved = resolve(plan);
  const Verdict verdict = memory_verdict(resolved, predict_memory(resolved));
  if (!verdict.fits) return std::nullopt;
  const StepProfile profile = predict(resolved);
  return PlanChange{overrides_of(plan, from), profile.verdict.fits, profile.step.seconds, profile.verdict.need};
}

/// The fastest of the frugal plans on that many devices.
std::optional<PlanChange> best_on(const Plan& from, std::int64_t devices) {
  std::optional<PlanChange> best;
  const Plan base = frugal(from);
  const std::int64_t context = from.context();
  for (std::int64_t tensor = 1; tensor <= from.hardware.devices_per_node && tensor * context <= devices; tensor *= 2)
    for (std::int64_t pipeline = 1; tensor * pipeline * context <= devices && pipeline <= from.model.layers;
         ++pipeline) {
      if (devices % (tensor * pipeline * context) != 0) continue;
      for (const int zero : {1, 3}) {
        Plan plan = base;
        plan.parallel.tensor = tensor;
        plan.parallel.pipeline = pipeline;
        plan.parallel.data = devices / (tensor * pipeline * context);
        plan.parallel.zero = plan.parallel.data * context == 1 ? 0 : zero;
        plan.parallel.sequence = from.parallel.sequence && tensor > 1;
        if ((zero == 3 && plan.parallel.zero == 0) || plan.batch.global_batch % plan.parallel.data != 0) continue;
        const auto change = fitting(plan, from);
        if (change && change->fits && (!best || change->step < best->step)) best = change;
      }
    }
  return best;
}

}  // namespace

std::optional<SmallestPlan> smallest_plan(const Plan& plan, std::int64_t most) {
  Plan alone = frugal(plan);
  alone.parallel = {};
  const double states = static_cast<double>(stage_states(alone, 0).total().value);
  const double limit = static_cast<double>(memory_limit(plan).value);
  for (const std::int64_t devices : numbers_of_devices(plan.hardware.devices_per_node, most)) {
    if (states > limit * static_cast<double>(devices)) continue;
    if (const auto change = best_on(plan, devices)) return SmallestPlan{devices, *change};
  }
  return std::nullopt;
}

}  // namespace reckon
