#include "runtime/train/reduction_call.h"

#include <ATen/ATen.h>

#include <span>
#include <utility>

#include "runtime/train/memory_account.h"
#include "runtime/train/ops/dispatch.h"
#include "runtime/train/rank_model.h"
#include "runtime/train/reduce/hierarchical_reduction.h"
#include "runtime/train/reduce/quantized_reduction.h"

namespace reckon {
namespace {

constexpr std::uint64_t kStepSeed = 0x2545f4914f6cdd1du;

/// The sum stands in the values that were given, or in a converted copy of them.
class PlainReduction final : public ReductionCall {
 public:
  PlainReduction(GroupCalls& group, at::Tensor sent, Reduced result)
      : group_(group), result_(result), sent_(std::move(sent)) {
    call_ = result == Reduced::whole ? group.all_reduce(sent_, "gradient")
                                     : group.reduce_scatter(sent_, own_part(), "gradient");
  }
  void finish(const TakeSum& take) override {
    call_.wait();
    take(0, result_ == Reduced::whole ? sent_ : own_part());
    sent_.reset();
  }

 private:
  at::Tensor own_part() const {
    const std::int64_t part = sent_.numel() / group_.size();
    return sent_.narrow(0, group_.rank() * part, part);
  }

  GroupCalls& group_;
  Reduced result_;
  at::Tensor sent_;
  TimedCall call_;
};

std::span<float> floats(const at::Tensor& tensor) {
  return {pointer<float>(tensor), static_cast<std::size_t>(tensor.numel())};
}

/// The values are free once they are quantized.
class ExchangeReduction final : public ReductionCall {
 public:
  ExchangeReduction(const Plan& plan, GroupCalls& group, const at::Tensor& values, Reduced result,
                    std::span<std::byte> workspace, at::Tensor sum, const QuantizeOptions& rounding)
      : group_(group),
        result_(result),
        rounds_(result == Reduced::own_part && plan.parallel.zero == 1),
        sum_(std::move(sum)),
        reduction_(group.communicator(), gradient_wire(plan),
                   std::vector<std::int64_t>(static_cast<std::size_t>(group.size()), sum_.numel()), workspace,
                   QuantizePlace{device_stream(sum_)}) {
    reduction_.start(floats(values), rounding);
  }

  void finish(const TakeSum& take) override {
    group_.wait(reduction_.pending(), "gradient", Collective::all_to_all);
    reduction_.reduce(floats(sum_));
    if (result_ == Reduced::own_part) {
      if (rounds_) reduction_.round_as_gathered(floats(sum_));  // as ZeRO-0 would see it
      take(0, sum_);
      return;
    }
    reduction_.start_gather(floats(sum_));
    group_.wait(reduction_.pending(), "gradient", Collective::all_gather);
    for (int rank = 0; rank < group_.size(); ++rank) {
      reduction_.read_part(rank, floats(sum_));
      take(rank * sum_.numel(), sum_);
    }
  }

 private:
  GroupCalls& group_;
  Reduced result_;
  bool rounds_;
  at::Tensor sum_;
  QuantizedReduction reduction_;
};

/// The same inside nodes first, then between them.
class NodeExchangeReduction final : public ReductionCall {
 public:
  NodeExchangeReduction(const Plan& plan, const RankGroups& groups, const at::Tensor& values, Reduced result,
                        std::span<std::byte> workspace, at::Tensor sum, const QuantizeOptions& rounding)
      : inside_(*groups.gradient_inside),
        across_(*groups.gradient_across),
        result_(result),
        rounds_(result == Reduced::own_part && plan.parallel.zero == 1),
        sum_(std::move(sum)),
        reduction_(inside_.communicator(), across_.communicator(), gradient_wire(plan),
                   std::vector<std::int64_t>(static_cast<std::size_t>(ranks()), sum_.numel()), workspace,
                   QuantizePlace{device_stream(sum_)}) {
    reduction_.start(floats(values), rounding);
  }

  void finish(const TakeSum& take) override {
    wait(inside_, Collective::all_to_all);
    reduction_.send_between(floats(sum_));
    wait(across_, Collective::all_to_all);
    reduction_.reduce(floats(sum_));
    if (result_ == Reduced::own_part) {
      if (rounds_) reduction_.round_as_gathered(floats(sum_));  // as ZeRO-0 would see it
      take(0, sum_);
      return;
    }
    reduction_.start_gather(floats(sum_));
    wait(across_, Collective::all_gather);
    reduction_.gather_inside();
    wait(inside_, Collective::all_gather);
    for (int rank = 0; rank < ranks(); ++rank) {
      reduction_.read_part(rank, floats(sum_));
      take(rank * sum_.numel(), sum_);
    }
  }

 private:
  int ranks() const { return inside_.size() * across_.size(); }
  void wait(GroupCalls& group, Collective collective) { group.wait(reduction_.pending(), "gradient", collective); }

  GroupCalls &inside_, &across_;
  Reduced result_;
  bool rounds_;
  at::Tensor sum_;
  HierarchicalReduction reduction_;
};

}  // namespace

Reductions::Reductions(const Plan& plan, const RankGroups& groups, const std::vector<std::int64_t>& units,
                       const at::TensorOptions& accumulator)
    : plan_(plan), groups_(groups) {
  const ReductionBuffers sizes = reduction_buffers(plan, units);
  const CategoryScope scope(MemoryCategory::communication);
  if (sizes.wire_bytes > 0) wire_ = at::empty({sizes.wire_bytes}, accumulator.dtype(at::kByte));
  if (sizes.sum_elements > 0) sum_ = at::empty({sizes.sum_elements}, accumulator);
  rounding_.rounding = plan.gradients.rounding;
}

void Reductions::begin_step(std::int64_t step) {
  rounding_.seed = plan_.train.seed + kStepSeed * static_cast<std::uint64_t>(step + 1);
}

bool Reductions::is_in_place(std::int64_t elements) const {
  return reduction_path(plan_, elements) == ReductionPath::in_place;
}

std::unique_ptr<ReductionCall> Reductions::start(GroupCalls& group, at::Tensor values, Reduced result,
                                                 std::int64_t first) {
  switch (reduction_path(plan_, values.numel())) {
    case ReductionPath::in_place: break;
    case ReductionPath::converted: {
      const at::ScalarType sent = scalar_type(plain_wire(plan_));
      const at::Tensor copy = wire_.view(sent).narrow(0, 0, values.numel());
      copy.copy_(values);
      values = copy;
      break;
    }
    case ReductionPath::exchanged: {
      ++rounding_.seed;  // every sum of a step rounds with numbers of its own
      QuantizeOptions rounding = rounding_;
      rounding.first_index = first;
      const std::span workspace(reinterpret_cast<std::byte*>(pointer<std::uint8_t>(wire_)),
                                static_cast<std::size_t>(wire_.numel()));
      at::Tensor sum = sum_.narrow(0, 0, values.numel() / group.size());
      if (groups_.gradient_inside && &group == groups_.weight_holders(plan_))
        return std::make_unique<NodeExchangeReduction>(plan_, groups_, values, result, workspace, std::move(sum),
                                                       rounding);
      return std::make_unique<ExchangeReduction>(plan_, group, values, result, workspace, std::move(sum), rounding);
    }
  }
  return std::make_unique<PlainReduction>(group, std::move(values), result);
}

}  // namespace reckon
