// The allocations and frees of one section's forward and backward, in order: what the transient peak, the allocator
// replay and the simulator's memory timeline walk, and what the runtime does.
//
// Forward: an op allocates its outputs' storage (views and in-place results have none of their own) and its workspace,
// which is freed before the next op. After the last op that reads or writes a storage: encoded copies are made of kept
// parts; parts that are kept as they are stay in the storage if they cover it, else are copied out; a storage that is
// not kept is freed. The section's input is allocated by whoever made it; the section's output is freed by the next.
//
// Backward: before an op, what it saved is made available: encoded tensors are decoded (for this op only), dropped ones
// recomputed from what is there (once, until the last op that reads them); in mode `full` the whole section runs again
// first. The op then makes its inputs' gradients: in place of the output's where it says so; added in place to one that
// exists by memory-bound ops, through a temporary by products. Gradients lie in storages as their tensors do. The
// gradient of the section's output is given; that of its input is handed on.
#pragma once

#include <vector>

#include "plan/kept_tensors.h"

namespace reckon {

struct MemoryEvent {
  bool allocates = true;
  int block = 0;  // the same number when the block is freed, in forward or in backward of the same section
  Bytes bytes;
  bool kept = false;  // an activation that backward reads, else a transient
  int op = 0;         // index into OpList::ops
};

/// Block of the section's input value (allocated by its maker) and gradient (handed on by backward; through in-place
/// residuals it is the block of the output's gradient). -1 where the input has no gradient (token ids).
int input_block(const OpList& list);
int input_gradient_block(const OpList& list);
/// Block of the section's output value (left allocated by forward) and gradient (given to backward); -1 for the head.
int output_block(const OpList& list);
int output_gradient_block(const OpList& list);

Bytes input_bytes(const OpList& list);
/// The section's input stays where it is until backward.
bool input_is_kept(const OpList& list, const KeptSet& kept);
Bytes output_gradient_bytes(const OpList& list);

std::vector<MemoryEvent> forward_events(const OpList& list, const KeptSet& kept);
std::vector<MemoryEvent> backward_events(const OpList& list, const KeptSet& kept);

/// Highest sum of allocated bytes, starting from `before`.
Bytes highest_bytes(const std::vector<MemoryEvent>& events, Bytes before);

}  // namespace reckon
