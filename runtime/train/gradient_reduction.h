// Sums the main gradients over the data-parallel group in pieces, each as soon as backward has finished it, so that
// moving bytes and computing overlap. ZeRO-0: all-reduce; ZeRO-1: reduce-scatter to the rank whose shard it is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/train/flat_pieces.h"
#include "runtime/train/group_calls.h"

namespace reckon {

class GradientReduction {
 public:
  /// `group` null = one replica, nothing to do.
  GradientReduction(const at::Tensor& gradients, std::vector<FlatPiece> pieces, GroupCalls* group)
      : gradients_(gradients), pieces_(std::move(pieces)), group_(group) {}

  /// Nothing at or above `offset` changes any more in this step: starts the reductions of what is complete.
  void complete_down_to(std::int64_t offset);
  /// Starts what is left and waits for everything.
  void finish();

 private:
  at::Tensor gradients_;
  std::vector<FlatPiece> pieces_;  // from the end of the buffer
  GroupCalls* group_;
  std::size_t started_ = 0;  // pieces under way
  std::deque<TimedCall> calls_;
};

}  // namespace reckon
