// Sums of gradients over a group, in the format and by the method that the plan names for the wire
// (plan/reduction_buffers.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "plan/plan.h"
#include "plan/reduction_buffers.h"
#include "runtime/quant/quantize.h"
#include "runtime/train/rank_groups.h"

namespace reckon {

enum class Reduced { own_part, whole };  // reduce-scatter, all-reduce

/// Takes the sum of the elements from `first` on, counted from the start of what was asked for, as it was sent.
using TakeSum = std::function<void(std::int64_t first, const at::Tensor& sum)>;

class ReductionCall {
 public:
  virtual ~ReductionCall() = default;
  /// Waits, and hands over the sum: of this rank's equal part or of everything, in one piece or part by part.
  virtual void finish(const TakeSum& take) = 0;
};

/// One rank's reductions with the buffers that they share.
class Reductions {
 public:
  /// `units` are the sizes of what will be summed first, `accumulator` the type of the gradients, and where they are.
  Reductions(const Plan& plan, const RankGroups& groups, const std::vector<std::int64_t>& units,
             const at::TensorOptions& accumulator);

  /// Numbers for stochastic rounding start anew.
  void begin_step(std::int64_t step);
  /// True if this sum needs no buffers, so that others may be under way.
  bool is_in_place(std::int64_t elements) const;
  /// Starts the sum of `values` (dense, a multiple of the group's size), which may be overwritten. `first` is their
  /// place in the flat buffer. A call that is not in place must finish before the next one starts.
  std::unique_ptr<ReductionCall> start(GroupCalls& group, at::Tensor values, Reduced result, std::int64_t first);

 private:
  const Plan& plan_;
  const RankGroups& groups_;
  at::Tensor wire_, sum_;
  QuantizeOptions rounding_;
};

}  // namespace reckon
