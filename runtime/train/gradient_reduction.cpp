#include "runtime/train/gradient_reduction.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace reckon {

GradientReduction::GradientReduction(const at::Tensor& gradients, const ParameterLayout& layout, GroupCalls* group,
                                     Bytes bucket)
    : gradients_(gradients),
      shard_elements_(layout.shard_elements),
      shards_(layout.shards),
      piece_elements_(std::max<std::int64_t>(1, bucket.value / gradients.element_size())),
      group_(group),
      started_(gradients.numel()) {}

void GradientReduction::start(std::int64_t first, std::int64_t last) {
  const at::Tensor piece = gradients_.narrow(0, first, last - first);
  if (shards_ == 1) {
    calls_.push_back(group_->all_reduce(piece));
    return;
  }
  std::vector<std::int64_t> counts;
  for (std::int64_t shard = 0; shard < shards_; ++shard) {
    const std::int64_t begin = std::clamp(shard * shard_elements_, first, last);
    const std::int64_t end = std::clamp((shard + 1) * shard_elements_, first, last);
    counts.push_back(end - begin);
  }
  calls_.push_back(group_->reduce_scatter(piece, counts));
}

void GradientReduction::complete_down_to(std::int64_t offset) {
  if (group_ == nullptr) return;
  while (started_ - piece_elements_ >= offset && started_ > 0) {
    const std::int64_t first = started_ - piece_elements_;
    start(first, started_);
    started_ = first;
  }
}

void GradientReduction::finish() {
  if (group_ == nullptr) return;
  while (started_ > 0) {
    const std::int64_t first = std::max<std::int64_t>(0, started_ - piece_elements_);
    start(first, started_);
    started_ = first;
  }
  for (TimedCall& call : calls_) call.wait();
  calls_.clear();
  started_ = gradients_.numel();
}

}  // namespace reckon
