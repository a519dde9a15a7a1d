// The blocks that a section's allocations are counted in, and the recorder that turns them into memory events: shared
// by the walks of forward and backward (memory_events.h).
#pragma once

#include <utility>
#include <vector>

#include "plan/flat_map.h"
#include "plan/memory_events.h"

namespace reckon {

/// Numbers of blocks: n tensors give n numbers to each kind.
enum class BlockKind { value, copy, gradient, restored, workspace, rerun };
int block_number(const OpList& list, BlockKind kind, int index);

/// The tensor that owns the storage of `tensor`.
int root_of(const OpList& list, int tensor);

/// The section's result, -1 if its last op only keeps statistics (the loss).
int output_tensor(const OpList& list);

class EventRecorder {
 public:
  explicit EventRecorder(const OpList& list);

  void allocate(int block, Bytes bytes, bool kept, int op);
  /// A block that was there before.
  void adopt(int block, Bytes bytes, bool kept) { live_[block] = {bytes, kept}; }
  void free(int block, int op);
  /// Allocated and freed by one op.
  void workspace(Bytes bytes, int op);
  std::vector<MemoryEvent> take() { return std::move(events_); }

 private:
  const OpList& list_;
  std::vector<MemoryEvent> events_;
  FlatMap<std::pair<Bytes, bool>> live_;
};

/// A kept set by storage. It refers to the set.
struct KeptView {
  FlatMap<const KeptTensor*> by_name;  // storage name -> how it is kept
  FlatMap<Bytes> plain_bytes;          // root -> bytes of it that are kept as computed

  KeptView(const OpList& list, const KeptSet& set);
  /// The storage itself stays because its kept parts cover it.
  bool keeps_whole(const OpList& list, int root) const;
};

/// Records the section's forward. `values` is how new storages are numbered: value, or rerun for a second forward
/// inside backward. `handed_on` is the root that stays allocated for the next section, -1 for none.
void record_forward(const OpList& list, const KeptSet& set, BlockKind values, int handed_on, EventRecorder& recorder);

/// Records the section's backward. Returns the block of its input's gradient, -1 where that has none.
int record_backward(const OpList& list, const KeptSet& set, EventRecorder& recorder);

}  // namespace reckon
