// The update of this rank's shard of weights, after which every rank has the new weights; the norm that clipping needs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "plan/plan.h"
#include "runtime/train/flat_pieces.h"
#include "runtime/train/group_calls.h"
#include "runtime/train/parameter_store.h"
#include "runtime/train/rank_groups.h"

namespace reckon {

/// Learning rate of step `step` (from 0): linear warm-up over warmup_steps, then constant, or linear or cosine decay to
/// minimum_learning_rate at the last step.
double learning_rate(const OptimizerSpec& optimizer, std::int64_t step, std::int64_t steps);

class Optimizer {
 public:
  /// With ZeRO the states cover this rank's shard only.
  Optimizer(const Plan& plan, ParameterStore& store, const RankGroups& groups, StepTimer& timer);

  /// This rank's share of the squared norm of all gradients: over all ranks of the world every weight is counted once.
  /// The shares are cut alike with and without ZeRO, so that their sum in rank order is the same to the bit.
  double squared_norm_share();
  /// One update with gradients scaled by `gradient_scale`; `step` counts from 1.
  void update(std::int64_t step, double rate, double gradient_scale);

 private:
  struct Range {
    std::int64_t first, last;
  };

  at::Tensor own(const at::Tensor& flat) const { return flat.narrow(0, first_, count_); }

  const OptimizerSpec spec_;
  ParameterStore& store_;
  GroupCalls* group_;
  StepTimer& timer_;
  StepTimer::Component component_;
  bool sharded_;
  std::int64_t first_, count_;  // this rank's part of the flat buffer: all of it without ZeRO
  std::vector<Range> counted_;  // of the flat buffer: what this rank adds to the norm
  std::vector<FlatPiece> gathers_;
  at::Tensor master_;  // fp32 weights of the part, where compute precision is lower
  at::Tensor first_moment_, second_moment_;
};

}  // namespace reckon
