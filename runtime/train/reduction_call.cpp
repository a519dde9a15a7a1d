#include "runtime/train/reduction_call.h"

#include <ATen/ATen.h>

#include <utility>

#include "runtime/train/memory_account.h"
#include "runtime/train/rank_model.h"

namespace reckon {
namespace {

at::ScalarType wire_type(const Plan& plan, at::ScalarType accumulator) {
  return plan.gradients.wire == NumberFormat::fp32 ? accumulator : scalar_type(plan.gradients.wire);
}

at::Tensor as_sent(const Plan& plan, at::Tensor values) {
  const CategoryScope scope(MemoryCategory::communication);
  return values.to(wire_type(plan, values.scalar_type()));
}

}  // namespace

ReductionCall::ReductionCall(const Plan& plan, GroupCalls& group, at::Tensor values, Reduced result)
    : group_(&group), result_(result), type_(values.scalar_type()) {
  values_ = as_sent(plan, std::move(values));
  if (result == Reduced::whole) {
    call_ = group.all_reduce(values_, "gradient");
  } else {
    const std::int64_t part = values_.numel() / group.size();
    call_ = group.reduce_scatter(values_, values_.narrow(0, group.rank() * part, part), "gradient");
  }
}

at::Tensor ReductionCall::finish() {
  call_.wait();
  const at::Tensor whole = std::exchange(values_, {});
  if (result_ == Reduced::whole) return whole.to(type_);
  const std::int64_t part = whole.numel() / group_->size();
  return whole.narrow(0, group_->rank() * part, part).to(type_);
}

bool reduces_in_place(const Plan& plan, at::ScalarType accumulator) {
  return plan.gradients.reduce == GradientReduce::all_reduce && wire_type(plan, accumulator) == accumulator;
}

}  // namespace reckon
