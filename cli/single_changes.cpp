#include "cli/single_changes.h"

#include <fmt/format.h>

#include "plan/choices.h"

namespace reckon {

namespace {

using Changes = std::vector<std::vector<std::string>>;

void turn_degree(Changes& changes, const ParallelSpec& parallel, const char* key, std::int64_t degree) {
  std::vector<std::string> also;
  if (std::string_view(key) == "parallel.pipeline")
    also = {"parallel.layers_per_stage=auto", "activations.recompute_layers=auto", "activations.bits_by_stage=auto"};
  const auto add = [&](std::int64_t to, std::int64_t data) {
    std::vector<std::string> change = {fmt::format("{}={}", key, to), fmt::format("parallel.data={}", data)};
    change.insert(change.end(), also.begin(), also.end());
    changes.push_back(std::move(change));
  };
  if (parallel.data % 2 == 0) add(2 * degree, parallel.data / 2);
  if (degree % 2 == 0) add(degree / 2, 2 * parallel.data);
}

void turn_pipeline(Changes& changes, const ParallelSpec& parallel) {
  if (parallel.pipeline == 1) return;
  if (parallel.schedule != ScheduleKind::interleaved)
    changes.push_back({"parallel.schedule=interleaved", "parallel.chunks=2", "parallel.layers_per_stage=auto"});
  else changes.push_back({"parallel.schedule=1f1b", "parallel.chunks=1", "parallel.layers_per_stage=auto"});
}

}  // namespace

std::vector<std::vector<std::string>> single_changes(const Plan& plan) {
  Changes changes;
  for (const Choice<Recompute>& mode : choices(Recompute{}))
    if (mode.value != plan.activations.recompute)
      changes.push_back({fmt::format("activations.recompute={}", mode.name), "activations.recompute_layers=auto"});
  if (!plan.activations.recompute_layers.empty()) changes.push_back({"activations.recompute_layers=auto"});
  const std::int64_t rows = plan.batch.micro_batch;
  changes.push_back({fmt::format("batch.micro_batch={}", 2 * rows)});
  if (rows % 2 == 0) changes.push_back({fmt::format("batch.micro_batch={}", rows / 2)});
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

}  // namespace reckon
