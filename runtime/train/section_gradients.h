// A section's gradients are whole in accumulator precision only while its backward pass runs. ZeRO-2 and 3: they are
// reduce-scattered at once, and this rank's part is added to its shard of the main gradients. ZeRO-0 and 1 with main
// gradients in fewer bits: they are added to those; the last micro-batch's pass reduces the sum before it is rounded.
// A reduction moves while the next section computes.
#pragma once

#include <memory>
#include <vector>

#include "runtime/train/gradient_accumulation.h"
#include "runtime/train/reduction_call.h"

namespace reckon {

class SectionGradients final : public GradientAccumulation {
 public:
  SectionGradients(const Plan& plan, ParameterStore& store, const RankGroups& groups, StepTimer& timer);

  void begin_step(std::int64_t step) override;
  std::vector<FlatWindow> open(const SectionUnits& section) override;
  void close(const SectionUnits& section, bool last_micro_batch) override;
  void end_backward() override { finish_pending(); }
  void finish() override;

 private:
  void reduce(const FlatRange& unit, at::Tensor values);
  void finish_pending();
  FlatRange own(const FlatRange& unit) const { return layout_.shard_of(unit, shard_); }
  void sum_over_replicas();
  void sum_tied_table();

  const Plan& plan_;
  MainGradients& main_;
  const ParameterLayout& layout_;
  const RankGroups& groups_;
  StepTimer& timer_;
  StepTimer::Component component_;
  GroupCalls* group_;  // ranks that sum; null = one
  std::int64_t shard_;
  const LocalParameter* tied_;
  at::TensorOptions accumulator_;
  std::vector<FlatWindow> open_;  // units of the section that is in its backward pass
  Reductions reductions_;
  struct Pending {
    FlatRange range;  // of the sum
    std::unique_ptr<ReductionCall> call;
  };
  std::vector<Pending> pending_;
};

}  // namespace reckon
