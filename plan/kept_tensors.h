// Applies a plan's activation policy to an op list: which saved tensors are kept, at which width, which are dropped,
// and which ops run again in backward to restore them.
//
// Rules. A class's policy is its entry in `activations.classes`, else `activations.stored`: kept in compute precision
// unless that is block-scaled, then at the width that `bits_by_stage` gives the stage. Statistics, indices and the
// loss's buffers are always kept as they are. Tensors that share their whole storage are kept once, in the most
// precise format that any of them asks for. The section's input cannot be restored inside the section: a policy that
// drops it keeps it in compute precision.
#pragma once

#include <vector>

#include "plan/layer_ops.h"

namespace reckon {

struct KeptTensor {
  int tensor = 0;   // index into OpList::tensors; tensors that share storage appear once, as the storage's first name
  Storage storage;  // how it is kept
  Bytes bytes;
  bool encoded = false;  // in another format than it was computed in: backward decodes it for each op that reads it
  int needed_until = 0;  // op whose backward (or recomputation before it) is the last to read it
};

struct KeptSet {
  std::vector<KeptTensor> kept;
  std::vector<int> recomputed_ops;  // indices into OpList::ops, forward order; all of them in mode `full`
  Bytes bytes() const;
};

/// `recompute` is the mode of this section (a stage may recompute only its first N layers); `stage` picks
/// bits_by_stage.
KeptSet kept_tensors(const Plan& plan, const OpList& list, Recompute recompute, int stage);

/// What the policy says for one class at one stage, before the recompute mode.
ClassPolicy class_policy(const Plan& plan, ActivationClass activation_class, int stage);

/// Width in which the stage's classes without a policy of their own are stored.
int storage_bits(const Plan& plan, std::int64_t stage);

/// The tensor under which the storage of `tensor` is kept: the first name of the whole storage, or a part's own index.
int storage_name(const OpList& list, int tensor);

/// Bytes that the section itself holds for a tensor: none for token ids and targets that it is given, which belong to
/// the micro-batch (micro_batch_bytes).
Bytes held_bytes(const OpList& list, int tensor);

/// Token ids and targets of one micro-batch, int32, held from its forward to its backward on every stage; of packed
/// documents also the tokens' positions.
Bytes micro_batch_bytes(const Plan& plan);
/// What lies beside the weights for the whole run: positions of a micro-batch's tokens, the same for all where every
/// row is one document, the table of rotations, fp32 cosine and sine of every position of a row, and memory.workspace.
Bytes constant_bytes(const Plan& plan);

/// Highest bytes of tensors that are not kept, while the section runs (memory_events.h walked op by op).
struct TransientPeak {
  Bytes forward;   // above the section's kept tensors
  Bytes backward;  // above the kept tensors still alive at the start of this section's backward
};
TransientPeak transient_peak(const OpList& list, const KeptSet& kept);

}  // namespace reckon
