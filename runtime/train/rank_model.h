// What the ops of one rank share: local shapes, types, tables, groups.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "plan/op_list_builder.h"
#include "plan/plan.h"
#include "plan/rank_grid.h"
#include "runtime/train/group_calls.h"
#include "runtime/train/ops/loss.h"
#include "runtime/train/ops/rotary.h"
#include "runtime/train/rank_groups.h"
#include "runtime/train/step_timer.h"
#include "runtime/train/train_device.h"

namespace reckon {

/// torch type of a plain format (fp64, fp32, bf16, fp16).
at::ScalarType scalar_type(NumberFormat format);

/// Of tensors of `type` on the device.
at::TensorOptions tensor_options(TrainDevice device, at::ScalarType type);

struct RankModel {
  const Plan& plan;
  Coordinates coordinates;
  LocalShape shape;
  at::ScalarType compute, accumulator;
  RotaryTable rotary;
  VocabularyGroup vocabulary;
  StepTimer& timer;
  TrainDevice device;
  GroupCalls* tensor = nullptr;  // null when the plan has no tensor parallelism
  GroupCalls* ulysses = nullptr;
  RingGroups ring;

  /// `groups` outlives the model. Throws ConfigError naming the key for a valid plan that cannot be executed yet.
  RankModel(const Plan& plan, const RankGroups& groups, StepTimer& timer, TrainDevice device = {});

  std::int64_t batch_rows() const { return plan.batch.micro_batch; }
  at::TensorOptions options(at::ScalarType type) const { return tensor_options(device, type); }
};

}  // namespace reckon
