#include "plan/backward_values.h"
#include "plan/gradient_blocks.h"
#include "plan/memory_blocks.h"

namespace reckon {

int record_backward(const OpList& list, const KeptSet& set, EventRecorder& recorder) {
  GradientBlocks gradients(list, recorder);
  BackwardValues values(list, set, gradients, recorder);
  if (set.recomputed_ops.size() == list.ops.size()) values.rerun_section();
  for (int i = static_cast<int>(list.ops.size()) - 1; i >= 0; --i) {
    values.restore_saved(i);
    gradients.make(i, [&](int tensor) { return values.block_of(storage_name(list, tensor)); });
    recorder.workspace(list.ops[static_cast<std::size_t>(i)].backward_workspace, i);
    gradients.release(i);
    values.release(i);
  }
  return gradients.of(0);
}

}  // namespace reckon
