#include "runtime/train/section_gradients.h"

#include <ATen/ATen.h>

#include "runtime/train/bucket_gradients.h"
#include "runtime/train/ops/dispatch.h"
#include "runtime/train/rank_model.h"

namespace reckon {

SectionGradients::SectionGradients(const Plan& plan, ParameterStore& store, const RankGroups& groups, StepTimer& timer)
    : plan_(plan),
      main_(store.main_gradients()),
      layout_(store.layout()),
      groups_(groups),
      timer_(timer),
      component_(timer.component("optimizer")),
      group_(groups.weight_holders(plan)),
      shard_(store.shard()),
      tied_(shared_table(store, groups)),
      accumulator_(main_.buffer().options().dtype(accumulator_type(scalar_type(plan.precision.compute)))),
      reductions_(plan, groups, unit_sizes(layout_), accumulator_) {}

void SectionGradients::begin_step(std::int64_t step) {
  const StepTimer::Span span(timer_, component_);
  main_.clear();
  main_.begin_step(step);
  reductions_.begin_step(step);
}

std::vector<FlatWindow> SectionGradients::open(const SectionUnits& section) {
  const StepTimer::Span span(timer_, component_);
  for (const FlatRange& unit : section.all()) open_.push_back({unit.first, at::zeros({unit.count}, accumulator_)});
  return open_;
}

void SectionGradients::close(const SectionUnits& section, bool last_micro_batch) {
  finish_pending();
  const std::vector<FlatRange> units = section.all();
  for (std::size_t i = 0; i < units.size(); ++i) {
    at::Tensor values = std::move(open_[i].values);
    const bool complete = last_micro_batch && i < section.held.size();
    if (main_.is_shard()) {
      reduce(units[i], std::move(values));
    } else if (complete) {
      main_.add_to(units[i], values);
      reduce(units[i], std::move(values));
    } else {
      const StepTimer::Span span(timer_, component_);
      main_.add(units[i], values);
    }
  }
  open_.clear();
}

void SectionGradients::reduce(const FlatRange& unit, at::Tensor values) {
  if (group_ == nullptr) {
    main_.write(unit, values);
    return;
  }
  if (!reductions_.is_in_place(unit.count)) finish_pending();  // they share the buffers
  const bool sharded = layout_.shards > 1;
  pending_.push_back(
      {sharded ? own(unit) : unit,
       reductions_.start(*group_, std::move(values), sharded ? Reduced::own_part : Reduced::whole, unit.first)});
  if (!main_.is_shard()) finish_pending();  // the last micro-batch's only
}

void SectionGradients::finish_pending() {
  for (Pending& pending : pending_)
    pending.call->finish([&](std::int64_t first, const at::Tensor& sum) {
      const StepTimer::Span span(timer_, component_);
      const FlatRange range{pending.range.first + first, sum.numel()};
      if (main_.is_shard()) main_.add(range, sum);
      else main_.write(range, sum);
    });
  pending_.clear();
}

void SectionGradients::finish() {
  finish_pending();
  sum_over_replicas();
  sum_tied_table();
}

void SectionGradients::sum_over_replicas() {
  if (!groups_.replica) return;
  for (const FlatRange& unit : layout_.units) {
    const auto call = reductions_.start(*groups_.replica, main_.read(own(unit)), Reduced::whole, own(unit).first);
    call->finish([&](std::int64_t first, const at::Tensor& sum) {
      main_.write({own(unit).first + first, sum.numel()}, sum);
    });
  }
}

/// Both ends of the pipeline hold the table as a unit of its own, so their shards are alike.
void SectionGradients::sum_tied_table() {
  if (tied_ == nullptr) return;
  const FlatRange part = own(layout_.units[layout_.unit_of(tied_->offset)]);
  const at::Tensor gradient = main_.read(part);
  groups_.embedding->all_reduce(gradient).wait();
  main_.write(part, gradient);
}

}  // namespace reckon
