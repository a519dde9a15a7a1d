// The whole weights of a section while it runs. With ZeRO-3 they are gathered from the shards, one section ahead, and
// freed when the section has run; otherwise they are the rank's own buffer.
#pragma once

#include <vector>

#include "runtime/train/flat_window.h"
#include "runtime/train/group_calls.h"
#include "runtime/train/parameter_store.h"

namespace reckon {

class WholeWeights {
 public:
  WholeWeights() = default;
  /// Starts gathering `units`. `shard` is used with ZeRO-3 only; all its ranks gather the same sections in the same
  /// order.
  WholeWeights(const ParameterStore& store, GroupCalls* shard, const std::vector<FlatRange>& units);

  /// Waits for the gather.
  const std::vector<FlatWindow>& windows();

 private:
  std::vector<FlatWindow> windows_;
  std::vector<TimedCall> calls_;
};

}  // namespace reckon
