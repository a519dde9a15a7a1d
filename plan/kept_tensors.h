// Applies a plan's activation policy to an op list: which saved tensors are kept, at which width, which are dropped,
// and which ops run again in backward to restore them.
#pragma once

#include <vector>

#include "plan/layer_ops.h"

namespace reckon {

struct KeptTensor {
  int tensor = 0;   // index into OpList::tensors; tensors that share storage appear once
  Storage storage;  // how it is kept
  Bytes bytes;
};

struct KeptSet {
  std::vector<KeptTensor> kept;
  std::vector<int> recomputed_ops;  // indices into OpList::ops, forward order
  Bytes bytes() const;
};

/// `recompute` is the mode of this layer (a stage may recompute only its first N layers); `stage` picks bits_by_stage.
KeptSet kept_tensors(const Plan& plan, const OpList& list, Recompute recompute, int stage);

/// Highest bytes of tensors that are not kept, while the section runs: lifetimes of layer_ops.h walked op by op.
struct TransientPeak {
  Bytes forward;   // above the kept tensors
  Bytes backward;  // above the kept tensors still alive at the start of this section's backward
};
TransientPeak transient_peak(const OpList& list, const KeptSet& kept);

}  // namespace reckon
