// Op times with one op a layer and nothing else, so that a step's duration is the schedule's formula.
#pragma once

#include "plan/op_times.h"
#include "plan/pipeline_schedule.h"
#include "tests/sim/plans.h"

namespace reckon {

struct SyntheticStep {
  Plan plan;
  OpTimes times;
};

/// A pipeline of `stages` x `chunks` virtual stages with `layers` in model order on them; every layer takes `forward`
/// and `backward`, every message `edge`. Each layer keeps one tensor of 1024 bytes for its backward.
inline SyntheticStep synthetic_step(ScheduleKind schedule, std::vector<std::int64_t> layers, std::int64_t stages,
                                    std::int64_t micro_batches, Seconds forward, Seconds backward,
                                    Seconds edge = Seconds(0.0)) {
  SyntheticStep step;
  std::int64_t all = 0;
  for (const std::int64_t count : layers) all += count;
  step.plan = test_plan(test_model(all));
  step.plan.parallel.pipeline = stages;
  step.plan.parallel.chunks = static_cast<std::int64_t>(layers.size()) / stages;
  step.plan.parallel.schedule = schedule;
  step.plan.parallel.layers_per_stage = std::move(layers);
  step.plan.batch = {1024, 1, micro_batches};

  const auto list_with = [](std::string_view op_name, ActivationClass output_class) {
    OpList list;
    list.tensors.push_back({"input", ActivationClass::norm_input, 512, NumberFormat::bf16, -1});
    list.tensors.push_back({"output", output_class, 512, NumberFormat::bf16, -1});
    Op op;
    op.name = op_name;
    op.inputs = {0};
    op.outputs = {1};
    op.saved = {0};
    list.ops.push_back(op);
    return list;
  };
  step.times.dense_layer.list = list_with("layer", ActivationClass::transient);
  step.times.dense_layer.ops = {{forward, backward, Seconds(0.0), {}, {}, Provenance::assumed}};
  step.times.embedding.list = list_with("embedding", ActivationClass::transient);
  step.times.embedding.list.tensors[0].kept_as = ActivationClass::tokens;
  step.times.embedding.ops = {OpTime{}};
  step.times.head.list = list_with("head", ActivationClass::log_sum_exp);
  step.times.head.ops = {OpTime{}};
  const auto count = static_cast<std::size_t>(stages);
  step.times.pipeline_send.assign(count, edge);
  step.times.optimizer.assign(count, Seconds(0.0));
  step.times.gradient_reduce.assign(count, Seconds(0.0));
  step.times.reduce_calls.assign(count, 1);
  step.times.parameter_gather.assign(count, Seconds(0.0));
  return step;
}

}  // namespace reckon
