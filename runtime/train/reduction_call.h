// One sum of gradients over a group, in the format and by the method that the plan names for the wire.
#pragma once

#include <ATen/core/Tensor.h>

#include "plan/plan.h"
#include "runtime/train/group_calls.h"

namespace reckon {

enum class Reduced { own_part, whole };  // reduce-scatter, all-reduce

class ReductionCall {
 public:
  /// Starts the sum of `values` (accumulator precision, dense, a multiple of the group's size). They may be
  /// overwritten.
  ReductionCall(const Plan& plan, GroupCalls& group, at::Tensor values, Reduced result);

  /// Waits. The sum of this rank's equal part, or of everything: a view of `values` or a tensor of its own.
  at::Tensor finish();

 private:
  GroupCalls* group_;
  Reduced result_;
  at::Tensor values_;  // what travels
  at::ScalarType type_;
  TimedCall call_;
};

/// Gradients travel as they are: a reduction needs no buffers, and any number may be under way.
bool reduces_in_place(const Plan& plan, at::ScalarType accumulator);

}  // namespace reckon
