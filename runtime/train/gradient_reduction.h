// Sums the main gradients over the data-parallel group in pieces, each as soon as backward has finished it, so that
// moving bytes and computing overlap. ZeRO-0: all-reduce; ZeRO-1 and 2: reduce-scatter to the rank whose shard it is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "plan/parameter_layout.h"
#include "runtime/train/group_calls.h"

namespace reckon {

class GradientReduction {
 public:
  /// `group` null = one replica, nothing to do. Pieces are cut from the end of the buffer, `bucket` bytes each.
  GradientReduction(const at::Tensor& gradients, const ParameterLayout& layout, GroupCalls* group, Bytes bucket);

  /// Nothing at or above `offset` changes any more in this step: starts the reductions of what is complete.
  void complete_down_to(std::int64_t offset);
  /// Starts what is left and waits for everything.
  void finish();

 private:
  void start(std::int64_t first, std::int64_t last);

  at::Tensor gradients_;
  std::int64_t shard_elements_, shards_, piece_elements_;
  GroupCalls* group_;
  std::int64_t started_;  // everything at or above this offset is under way
  std::deque<TimedCall> calls_;
};

}  // namespace reckon
