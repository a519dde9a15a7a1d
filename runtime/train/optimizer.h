// Gradient norm, clipping and the update of this rank's shard of weights; afterwards every rank has the new weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "plan/plan.h"
#include "runtime/train/group_calls.h"
#include "runtime/train/parameter_store.h"

namespace reckon {

/// Learning rate of step `step` (from 0): linear warm-up over warmup_steps, then constant, or linear or cosine decay to
/// minimum_learning_rate at the last step.
double learning_rate(const OptimizerSpec& optimizer, std::int64_t step, std::int64_t steps);

class Optimizer {
 public:
  /// `group`: the ranks that hold the same weights, null for one. With ZeRO the states cover this rank's shard only.
  Optimizer(const Plan& plan, ParameterStore& store, GroupCalls* group, StepTimer& timer);

  /// Norm over all gradients of the group's ranks. Sums add per shard, then in rank order, so that it is the same with
  /// and without ZeRO.
  double gradient_norm();
  /// One update with gradients scaled by `gradient_scale`; `step` counts from 1.
  void update(std::int64_t step, double rate, double gradient_scale);

 private:
  at::Tensor own(const at::Tensor& flat) const { return flat.narrow(0, first_, count_); }

  const OptimizerSpec spec_;
  ParameterStore& store_;
  GroupCalls* group_;
  StepTimer& timer_;
  StepTimer::Component component_;
  bool sharded_;
  std::int64_t first_, count_;  // this rank's part of the flat buffer: all of it without ZeRO
  at::Tensor master_;           // fp32 weights of the part, where compute precision is lower
  at::Tensor first_moment_, second_moment_;
};

}  // namespace reckon
