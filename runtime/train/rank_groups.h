// The communicators of one rank, split from the world in the same order on all ranks.
#pragma once

#include <memory>

#include "plan/rank_grid.h"
#include "runtime/train/group_calls.h"

namespace reckon {

/// Null where the group has one member.
struct RankGroups {
  Coordinates coordinates;
  std::unique_ptr<GroupCalls> tensor, gradient, shard;
  std::unique_ptr<GroupCalls> stage_outputs, stage_gradients;  // along the pipeline, one for each direction

  RankGroups(const Plan& plan, Communicator& world, StepTimer& timer);

  /// The ranks whose gradients are summed: with ZeRO those that share the states.
  GroupCalls* weight_holders(const Plan& plan) const { return plan.parallel.zero > 0 ? shard.get() : gradient.get(); }
};

}  // namespace reckon
