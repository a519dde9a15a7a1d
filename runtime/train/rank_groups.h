// The communicators of one rank, split from the world in the same order on all ranks.
#pragma once

#include <memory>
#include <vector>

#include "plan/parameter_layout.h"
#include "plan/rank_grid.h"
#include "runtime/train/group_calls.h"

namespace reckon {

/// The ring's communicators, one for each kind of message, because a rank may be ahead of another with one of them.
/// Null without a ring.
struct RingGroups {
  GroupCalls* keys = nullptr;
  GroupCalls* gradients = nullptr;
};

/// Null where the group has one member.
struct RankGroups {
  Coordinates coordinates;
  std::unique_ptr<GroupCalls> tensor, ulysses;
  std::unique_ptr<GroupCalls> ring_keys, ring_gradients;  // blocks, and their gradients on the way back
  std::unique_ptr<GroupCalls> gradient;                   // without ZeRO: ranks that hold the same weights
  std::unique_ptr<GroupCalls> shard, replica;             // ZeRO: ranks that share them; that hold the same shard
  std::unique_ptr<GroupCalls> gradient_inside, gradient_across;  // exchanges by node: both or none
  std::unique_ptr<GroupCalls> key_value_replicas;                // tensor ranks that hold the same key/value heads
  std::unique_ptr<GroupCalls> embedding;                         // first and last stage, where the table is tied
  std::unique_ptr<GroupCalls> stage_outputs, stage_gradients;    // along the pipeline, one for each direction

  RankGroups(const Plan& plan, Communicator& world, StepTimer& timer);

  /// Every group, for counters.
  std::vector<GroupCalls*> all() const;
  /// True on one rank of those that hold the same weights because of tensor parallelism or tying.
  bool counts(const LocalParameter& parameter) const;

  /// The ranks over which gradients are summed first: with ZeRO those that share the states.
  GroupCalls* weight_holders(const Plan& plan) const { return plan.parallel.zero > 0 ? shard.get() : gradient.get(); }
};

}  // namespace reckon
