// Gradients of weights that several tensor ranks hold alike but have seen different parts of: with sequence parallelism
// all replicated weights (each rank saw its own tokens), and key and value weights whose heads are replicated because
// there are fewer than ranks (each rank saw its own query heads). They are summed over the ranks that hold them, once a
// step and after the sum over data replicas, which commutes: of its shard only with ZeRO, in one message for each
// group.
#pragma once

#include <vector>

#include "runtime/train/parameter_store.h"
#include "runtime/train/rank_groups.h"

namespace reckon {

class ReplicatedGradients {
 public:
  /// All must outlive it.
  ReplicatedGradients(const Plan& plan, ParameterStore& store, const RankGroups& groups);

  /// All ranks call it when the main gradients are summed over data replicas.
  void sum();

 private:
  void sum_over(GroupCalls& group, const std::vector<FlatRange>& ranges);

  ParameterStore& store_;
  const RankGroups& groups_;
  std::vector<FlatRange> tensor_, key_value_;  // what this rank's shard holds of them
};

}  // namespace reckon
