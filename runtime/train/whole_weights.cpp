#include "runtime/train/whole_weights.h"

#include <ATen/ATen.h>

namespace reckon {

WholeWeights::WholeWeights(const ParameterStore& store, GroupCalls* shard, const std::vector<FlatRange>& units) {
  if (!store.weights_are_shard()) {
    windows_.push_back({0, store.weights()});
    return;
  }
  for (const FlatRange& unit : units) {
    windows_.push_back({unit.first, at::empty({unit.count}, store.weights().options())});
    calls_.push_back(shard->all_gather(store.own_weights(unit), windows_.back().values, "parameter"));
  }
}

const std::vector<FlatWindow>& WholeWeights::windows() {
  for (TimedCall& call : calls_) call.wait();
  calls_.clear();
  return windows_;
}

}  // namespace reckon
