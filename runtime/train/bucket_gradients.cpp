#include "runtime/train/bucket_gradients.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace reckon {

const LocalParameter* shared_table(const ParameterStore& store, const RankGroups& groups) {
  return groups.embedding && groups.embedding->size() > 1 ? store.find("model.embed_tokens.weight") : nullptr;
}

BucketGradients::BucketGradients(const Plan& plan, ParameterStore& store, const RankGroups& groups, StepTimer& timer)
    : plan_(plan),
      main_(store.main_gradients()),
      layout_(store.layout()),
      groups_(groups),
      timer_(timer),
      group_(groups.weight_holders(plan)),
      tied_(shared_table(store, groups)),
      result_(layout_.shards > 1 ? Reduced::own_part : Reduced::whole),
      reductions_(plan, groups, unit_sizes(layout_), main_.buffer().options()),
      left_(layout_.units.size()) {}

void BucketGradients::begin_step(std::int64_t step) {
  const StepTimer::Span span(timer_, timer_.component("optimizer"));
  main_.clear();
  reductions_.begin_step(step);
}

void BucketGradients::close(const SectionUnits& section, bool last_micro_batch) {
  if (!last_micro_batch) return;
  const std::int64_t floor = tied_ != nullptr ? tied_->offset + tied_->elements() : 0;
  complete_down_to(std::max(section.first_offset, floor));
}

void BucketGradients::complete_down_to(std::int64_t offset) {
  if (group_ == nullptr) return;
  for (; left_ > 0 && layout_.units[left_ - 1].first >= offset; --left_) {
    const FlatRange& unit = layout_.units[left_ - 1];
    start(*group_, unit, result_ == Reduced::whole ? unit : layout_.shard_of(unit, group_->rank()), result_);
  }
}

void BucketGradients::start(GroupCalls& group, const FlatRange& values, const FlatRange& reduced, Reduced result) {
  if (!reductions_.is_in_place(values.count)) finish_all();
  const at::Tensor gradients = main_.buffer().narrow(0, values.first, values.count);
  calls_.push_back({reduced, reductions_.start(group, gradients, result, values.first)});
}

void BucketGradients::finish_all() {
  for (; !calls_.empty(); calls_.pop_front()) {
    const FlatRange& range = calls_.front().range;
    calls_.front().call->finish([&](std::int64_t first, const at::Tensor& sum) {
      main_.write({range.first + first, sum.numel()}, sum);
    });
  }
}

void BucketGradients::finish() {
  if (tied_ != nullptr)
    groups_.embedding->all_reduce(main_.buffer().narrow(0, tied_->offset, tied_->elements())).wait();
  complete_down_to(0);
  finish_all();
  left_ = layout_.units.size();
  sum_over_replicas();
}

void BucketGradients::sum_over_replicas() {
  if (!groups_.replica) return;
  const std::int64_t shard = group_ != nullptr ? group_->rank() : 0;
  for (const FlatRange& unit : layout_.units) {
    const FlatRange own = layout_.shard_of(unit, shard);
    start(*groups_.replica, own, own, Reduced::whole);
  }
  finish_all();
}

}  // namespace reckon
