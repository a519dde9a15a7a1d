// Gradients while a section runs backward: which block holds the gradient of each storage, from the op that first adds
// to it to the op that made the storage.
#pragma once

#include <functional>
#include <vector>

#include "plan/memory_blocks.h"

namespace reckon {

class GradientBlocks {
 public:
  /// The gradient of the section's output is there from the start. List and recorder outlive this.
  GradientBlocks(const OpList& list, EventRecorder& recorder);

  /// Makes the gradients of the inputs of op `index`. `value_block` names the block that holds a saved input's value,
  /// for ops whose gradient overwrites it.
  void make(int index, const std::function<int(int tensor)>& value_block);
  /// Frees the gradients of the op's outputs, unless an earlier op writes to their storages.
  void release(int index);

  bool holds(int block) const;
  /// Block of the gradient of storage `root`, -1 where it has none.
  int of(int root) const;

 private:
  bool has_gradient(int tensor) const;
  bool made_before(int root, int index) const;

  const OpList& list_;
  EventRecorder& recorder_;
  FlatMap<int> blocks_;      // root -> block
  std::vector<char> read_;   // roots that some op reads
  std::vector<char> added_;  // roots whose gradient the running op has reached
};

}  // namespace reckon
