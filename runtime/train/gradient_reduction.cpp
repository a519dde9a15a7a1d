#include "runtime/train/gradient_reduction.h"

#include <ATen/ATen.h>

namespace reckon {

void GradientReduction::complete_down_to(std::int64_t offset) {
  if (group_ == nullptr) return;
  for (; started_ < pieces_.size() && pieces_[started_].first >= offset; ++started_) {
    const FlatPiece& piece = pieces_[started_];
    const at::Tensor part = gradients_.narrow(0, piece.first, piece.count);
    if (piece.shard_counts.size() == 1) calls_.push_back(group_->all_reduce(part));
    else calls_.push_back(group_->reduce_scatter(part, piece.shard_counts, "gradient"));
  }
}

void GradientReduction::finish() {
  complete_down_to(0);
  for (TimedCall& call : calls_) call.wait();
  calls_.clear();
  started_ = 0;
}

}  // namespace reckon
