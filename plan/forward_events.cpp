#include <utility>

#include "plan/memory_blocks.h"

namespace reckon {

namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

/// Op that reads or writes each storage last.
FlatMap<int> last_uses(const OpList& list) {
  FlatMap<int> last_use;
  last_use.reserve(list.tensors.size());
  for (std::size_t i = 0; i < list.ops.size(); ++i)
    for (const std::vector<int>* tensors : {&list.ops[i].inputs, &list.ops[i].outputs})
      for (const int tensor : *tensors) last_use[root_of(list, tensor)] = static_cast<int>(i);
  return last_use;
}

}  // namespace

void record_forward(const OpList& list, const KeptSet& set, BlockKind values, int handed_on, EventRecorder& recorder) {
  const KeptView kept(list, set);
  const bool first_time = values == BlockKind::value;  // what a second forward makes lives for this backward only
  const FlatMap<int> last_use = last_uses(list);
  std::vector<char> live(list.tensors.size(), 0);
  const auto becomes_live = [&](int root) { return std::exchange(live[at(root)], char{1}) == 0; };
  for (const int tensor : list.ops.front().inputs) becomes_live(root_of(list, tensor));  // the section's input
  const auto number = [&](int root) { return block_number(list, root == 0 ? BlockKind::value : values, root); };
  for (std::size_t i = 0; i < list.ops.size(); ++i) {
    const Op& op = list.ops[i];
    const int index = static_cast<int>(i);
    // A second input of the section (targets) was there before and is counted from here.
    for (const std::vector<int>* tensors : {&op.inputs, &op.outputs})
      for (const int tensor : *tensors)
        if (const int root = root_of(list, tensor); becomes_live(root))
          recorder.allocate(number(root), held_bytes(list, root), first_time && kept.keeps_whole(list, root), index);
    recorder.workspace(op.forward_workspace, index);
    for (const auto& [root, last] : last_use) {
      if (last != index) continue;
      const bool stays = kept.keeps_whole(list, root);
      for (const auto& [name, how] : kept.by_name)
        if (root_of(list, name) == root && (how->encoded || !stays))
          recorder.allocate(block_number(list, BlockKind::copy, name), how->bytes, first_time, index);
      if (!stays && root != handed_on) recorder.free(number(root), index);
    }
  }
}

}  // namespace reckon
