// Values that a section's backward reads: kept tensors, decoded copies of them, and what is computed again, each until
// the last op that reads it.
#pragma once

#include <vector>

#include "plan/gradient_blocks.h"
#include "plan/memory_blocks.h"

namespace reckon {

class BackwardValues {
 public:
  /// All arguments outlive this. A block that holds a gradient is not freed as a value.
  BackwardValues(const OpList& list, const KeptSet& set, const GradientBlocks& gradients, EventRecorder& recorder);

  /// Runs the whole section forward again, from its input.
  void rerun_section();
  /// Makes all that op `index` saved readable, and frees what was computed again on the way to it.
  void restore_saved(int index);
  /// Frees what was decoded for op `index`, and what it is the last to read.
  void release(int index);
  /// The block that holds a storage's value.
  int block_of(int name) const { return available_.at(name); }

 private:
  void adopt_kept();
  void find_last_reads();
  void make_available(int name, int op, std::vector<int>& decoded, int before);
  void rerun(int again, int op);
  int block_for(const Op& again, int output, int op);
  bool holds_whole(int block, int root) const;
  void release_value(int name, int op);

  const OpList& list_;
  const KeptView kept_;
  const KeptSet& set_;
  const GradientBlocks& gradients_;
  EventRecorder& recorder_;
  FlatMap<int> needed_until_;       // storage name -> op index
  FlatMap<int> available_;          // storage name -> block that holds its value
  std::vector<int> decoded_;        // for the running op
  std::vector<int> intermediates_;  // recomputed on the way to what an op saved
};

}  // namespace reckon
