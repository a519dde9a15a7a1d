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
      in_place_(reduces_in_place(plan, main_.buffer().scalar_type())),
      left_(layout_.units.size()) {}

void BucketGradients::begin_step(std::int64_t step) {
  const StepTimer::Span span(timer_, timer_.component("optimizer"));
  main_.clear();
  main_.begin_step(step);
}

void BucketGradients::close(const SectionUnits& section, bool last_micro_batch) {
  if (!last_micro_batch) return;
  const std::int64_t floor = tied_ != nullptr ? tied_->offset + tied_->elements() : 0;
  complete_down_to(std::max(section.first_offset, floor));
}

void BucketGradients::complete_down_to(std::int64_t offset) {
  if (group_ == nullptr) return;
  for (; left_ > 0 && layout_.units[left_ - 1].first >= offset; --left_) {
    if (!in_place_ && !calls_.empty()) finish_oldest();  // one set of buffers
    const FlatRange& unit = layout_.units[left_ - 1];
    calls_.emplace_back(unit, ReductionCall(plan_, *group_, main_.buffer().narrow(0, unit.first, unit.count), result_));
  }
}

void BucketGradients::finish_oldest() {
  auto& [unit, call] = calls_.front();
  const FlatRange reduced = result_ == Reduced::whole ? unit : layout_.shard_of(unit, group_->rank());
  main_.write(reduced, call.finish());
  calls_.pop_front();
}

void BucketGradients::finish() {
  if (tied_ != nullptr)
    groups_.embedding->all_reduce(main_.buffer().narrow(0, tied_->offset, tied_->elements())).wait();
  complete_down_to(0);
  while (!calls_.empty()) finish_oldest();
  left_ = layout_.units.size();
  sum_over_replicas();
}

void BucketGradients::sum_over_replicas() {
  if (!groups_.replica) return;
  const std::int64_t shard = group_ != nullptr ? group_->rank() : 0;
  for (const FlatRange& unit : layout_.units) {
    const FlatRange own = layout_.shard_of(unit, shard);
    if (!in_place_ && !calls_.empty()) {
      main_.write(calls_.front().first, calls_.front().second.finish());
      calls_.pop_front();
    }
    calls_.emplace_back(own, ReductionCall(plan_, *groups_.replica, main_.read(own), Reduced::whole));
  }
  for (; !calls_.empty(); calls_.pop_front()) main_.write(calls_.front().first, calls_.front().second.finish());
}

}  // namespace reckon
