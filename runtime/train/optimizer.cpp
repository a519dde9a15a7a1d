#include "runtime/train/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/train/kernels/elementwise.h"
#include "runtime/train/kernels/optimizer_kernels.h"
#include "runtime/train/memory_account.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {

double learning_rate(const OptimizerSpec& optimizer, std::int64_t step, std::int64_t steps) {
  const double peak = optimizer.learning_rate, least = optimizer.minimum_learning_rate;
  if (step < optimizer.warmup_steps)
    return peak * static_cast<double>(step + 1) / static_cast<double>(optimizer.warmup_steps);
  const std::int64_t decay_steps = std::max<std::int64_t>(1, steps - 1 - optimizer.warmup_steps);
  const double progress =
      std::min(1.0, static_cast<double>(step - optimizer.warmup_steps) / static_cast<double>(decay_steps));
  switch (optimizer.schedule) {
    case LearningRateSchedule::constant: return peak;
    case LearningRateSchedule::linear: return peak + (least - peak) * progress;
    case LearningRateSchedule::cosine:
      return least + (peak - least) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  }
  return peak;
}

Optimizer::Optimizer(const Plan& plan, ParameterStore& store, const RankGroups& groups, StepTimer& timer)
    : spec_(plan.optimizer),
      store_(store),
      group_(groups.weight_holders(plan)),
      timer_(timer),
      component_(timer.component("optimizer")),
      sharded_(store.layout().shards > 1),
      first_(sharded_ ? group_->rank() * store.layout().shard_elements : 0),
      count_(sharded_ ? store.layout().shard_elements : store.layout().padded_elements) {
  const std::int64_t ranks = group_ != nullptr ? group_->size() : 1, rank = group_ != nullptr ? group_->rank() : 0;
  const std::int64_t share = (store.layout().elements + ranks - 1) / ranks;
  for (const LocalParameter& parameter : store.layout().parameters) {
    const Range range{std::max(parameter.offset, rank * share),
                      std::min(parameter.offset + parameter.elements(), (rank + 1) * share)};
    if (range.first < range.last && groups.counts(parameter)) counted_.push_back(range);
  }
  if (sharded_) gathers_ = flat_pieces(store.layout(), plan.gradients.bucket, store.gradients().element_size());
  const CategoryScope scope(MemoryCategory::optimizer);
  const at::Tensor weights = own(store.weights());
  if (weights.scalar_type() == at::kBFloat16) master_ = weights.to(at::kFloat);
  if (spec_.kind != OptimizerKind::adamw) return;
  first_moment_ = at::zeros({count_}, at::kFloat);
  second_moment_ = at::zeros({count_}, at::kFloat);
}

double Optimizer::squared_norm_share() {
  const StepTimer::Span span(timer_, component_);
  const auto sum_over_ranges = [&](const auto* gradients) {
    double sum = 0;
    for (const Range& range : counted_)
      sum += kernels::sum_of_squares(gradients + range.first, range.last - range.first);
    return sum;
  };
  return store_.gradients().scalar_type() == at::kDouble ? sum_over_ranges(pointer<const double>(store_.gradients()))
                                                         : sum_over_ranges(pointer<const float>(store_.gradients()));
}

void Optimizer::update(std::int64_t step, double rate, double gradient_scale) {
  const at::Tensor weights = own(store_.weights()), gradients = own(store_.gradients());
  {
    const StepTimer::Span span(timer_, component_);
    const at::Tensor& target = master_.defined() ? master_ : weights;
    const auto scale = static_cast<float>(gradient_scale);
    if (spec_.kind == OptimizerKind::sgd) {
      kernels::sgd(static_cast<float>(rate), static_cast<float>(spec_.weight_decay), scale, pointer<float>(target),
                   pointer<const float>(gradients), count_);
      if (master_.defined())
        kernels::to_bfloat16(pointer<const float>(master_), pointer<kernels::BFloat16>(weights), count_);
    } else {
      const kernels::AdamwStep values{static_cast<float>(rate),
                                      static_cast<float>(spec_.beta1),
                                      static_cast<float>(spec_.beta2),
                                      static_cast<float>(spec_.epsilon),
                                      static_cast<float>(spec_.weight_decay),
                                      scale,
                                      static_cast<float>(1.0 - std::pow(spec_.beta1, static_cast<double>(step))),
                                      static_cast<float>(1.0 - std::pow(spec_.beta2, static_cast<double>(step)))};
      if (master_.defined())
        kernels::adamw(values, pointer<float>(master_), pointer<float>(first_moment_), pointer<float>(second_moment_),
                       pointer<const float>(gradients), pointer<kernels::BFloat16>(weights), count_);
      else
        kernels::adamw(values, pointer<float>(target), pointer<float>(first_moment_), pointer<float>(second_moment_),
                       pointer<const float>(gradients), count_);
    }
  }
  std::vector<TimedCall> calls;
  for (const FlatPiece& piece : gathers_)
    calls.push_back(
        group_->all_gather(store_.weights().narrow(0, piece.first, piece.count), piece.shard_counts, "parameter"));
  for (TimedCall& call : calls) call.wait();
}

}  // namespace reckon
