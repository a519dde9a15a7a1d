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

Optimizer::Optimizer(const Plan& plan, ParameterStore& store, GroupCalls* group, StepTimer& timer)
    : spec_(plan.optimizer),
      store_(store),
      group_(group),
      timer_(timer),
      component_(timer.component("optimizer")),
      sharded_(store.layout().shards > 1),
      first_(sharded_ ? group->rank() * store.layout().shard_elements : 0),
      count_(sharded_ ? store.layout().shard_elements : store.layout().padded_elements) {
  const CategoryScope scope(MemoryCategory::optimizer);
  const at::Tensor weights = own(store.weights());
  if (weights.scalar_type() == at::kBFloat16) master_ = weights.to(at::kFloat);
  if (spec_.kind != OptimizerKind::adamw) return;
  first_moment_ = at::zeros({count_}, at::kFloat);
  second_moment_ = at::zeros({count_}, at::kFloat);
}

double Optimizer::gradient_norm() {
  const StepTimer::Span span(timer_, component_);
  const std::int64_t elements = store_.gradients().numel();
  const std::int64_t parts = group_ != nullptr ? group_->size() : 1, part = group_ != nullptr ? group_->rank() : 0;
  const std::int64_t width = (elements + parts - 1) / parts;
  const std::int64_t begin = std::min(elements, part * width), end = std::min(elements, begin + width);
  at::Tensor sum = at::empty({1}, at::kDouble);
  *pointer<double>(sum) = kernels::sum_of_squares(pointer<const float>(store_.gradients()) + begin, end - begin);
  if (group_ != nullptr) group_->all_reduce(sum).wait();
  return std::sqrt(*pointer<double>(sum));
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
  if (sharded_) group_->all_gather(own(store_.weights()), store_.weights()).wait();
}

}  // namespace reckon
