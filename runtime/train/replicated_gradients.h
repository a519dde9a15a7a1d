// Gradients of weights that several tensor ranks hold alike but have seen different parts of: with sequence parallelism
// all replicated weights (each rank saw its own tokens), and key and value weights whose heads are replicated because
// there are fewer than ranks (each rank saw its own query heads). They are summed over the ranks that hold them.
#pragma once

#include <cstdint>

#include "runtime/train/parameter_store.h"
#include "runtime/train/rank_groups.h"

namespace reckon {

class ReplicatedGradients {
 public:
  ReplicatedGradients(const Plan& plan, const ParameterStore& store, const RankGroups& groups);

  /// Sums those of model layer `layer` (kEmbeddingLayer, kHeadLayer). All tensor ranks call it in the same order.
  void sum_layer(std::int64_t layer) const;

 private:
  const Plan& plan_;
  const ParameterStore& store_;
  const RankGroups& groups_;
};

}  // namespace reckon
