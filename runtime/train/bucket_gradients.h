// Ops accumulate into the main gradients themselves. The last micro-batch's backward reduces them unit by unit from the
// end of the flat buffer, each as soon as nothing in it changes any more, so that moving bytes and computing overlap.
// ZeRO-0: all-reduce; ZeRO-1: reduce-scatter to the rank whose shard it is.
#pragma once

#include <deque>
#include <memory>

#include "runtime/train/gradient_accumulation.h"
#include "runtime/train/reduction_call.h"

namespace reckon {

class BucketGradients final : public GradientAccumulation {
 public:
  BucketGradients(const Plan& plan, ParameterStore& store, const RankGroups& groups, StepTimer& timer);

  void begin_step(std::int64_t step) override;
  std::vector<FlatWindow> open(const SectionUnits&) override { return {{0, main_.buffer()}}; }
  void close(const SectionUnits& section, bool last_micro_batch) override;
  void end_backward() override {}
  void finish() override;

 private:
  /// Nothing at or above `offset` changes any more in this step: starts the reductions of what is complete.
  void complete_down_to(std::int64_t offset);
  /// Sums `values` into `reduced`; before a sum that needs the buffers, what is under way ends.
  void start(GroupCalls& group, const FlatRange& values, const FlatRange& reduced, Reduced result);
  void finish_all();
  void sum_over_replicas();

  const Plan& plan_;
  MainGradients& main_;
  const ParameterLayout& layout_;
  const RankGroups& groups_;
  StepTimer& timer_;
  GroupCalls* group_;                     // ranks that sum; null = one replica
  const LocalParameter* tied_ = nullptr;  // a table that another stage uses too
  Reduced result_;
  Reductions reductions_;
  std::size_t left_;  // units whose reduction has not started
  struct Pending {
    FlatRange range;  // of the sum
    std::unique_ptr<ReductionCall> call;
  };
  std::deque<Pending> calls_;
};

/// The table that both ends of the pipeline use; null where there is none or one rank is both.
const LocalParameter* shared_table(const ParameterStore& store, const RankGroups& groups);

}  // namespace reckon
