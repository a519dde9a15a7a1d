#include "plan/gradient_blocks.h"

#include <algorithm>
#include <utility>

namespace reckon {

namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

Bytes gradient_bytes(const OpList& list, int root) {
  Tensor rest = list.tensors[at(root)];
  rest.elements = rest.gradient_rest;
  return held_bytes(list, root) + rest.bytes();
}

}  // namespace

GradientBlocks::GradientBlocks(const OpList& list, EventRecorder& recorder)
    : list_(list), recorder_(recorder), read_(list.tensors.size(), 0), added_(list.tensors.size(), 0) {
  blocks_.reserve(list.tensors.size());
  for (const Op& op : list.ops)
    for (const int tensor : op.inputs) read_[at(root_of(list, tensor))] = 1;
  const int output = output_tensor(list);
  if (output < 0) return;
  const int root = root_of(list, output), block = block_number(list, BlockKind::gradient, root);
  recorder_.adopt(block, held_bytes(list, root), false);
  blocks_[root] = block;
}

void GradientBlocks::make(int index, const std::function<int(int)>& value_block) {
  const Op& op = list_.ops[at(index)];
  added_.assign(list_.tensors.size(), 0);
  for (const int input : op.inputs) {
    if (!has_gradient(input)) continue;
    const int root = root_of(list_, input);
    if (blocks_.contains(root)) {  // added to what is there: in place, or through a temporary by a product
      const bool own =
          std::any_of(op.outputs.begin(), op.outputs.end(), [&](int output) { return root_of(list_, output) == root; });
      const bool first_of_op = std::exchange(added_[at(root)], char{1}) == 0;
      if (op.kind == OpKind::gemm && !own && first_of_op) recorder_.workspace(held_bytes(list_, input), index);
      continue;
    }
    added_[at(root)] = 1;
    if (op.gradient_in_place) {
      blocks_[root] = blocks_.at(root_of(list_, op.outputs.front()));
    } else if (op.gradient_over_input && input == op.inputs.front()) {
      blocks_[root] = value_block(input);
    } else {
      const int block = block_number(list_, BlockKind::gradient, root);
      recorder_.allocate(block, gradient_bytes(list_, root), false, index);
      blocks_[root] = block;
    }
  }
}

void GradientBlocks::release(int index) {
  for (const int output : list_.ops[at(index)].outputs) {
    const int root = root_of(list_, output);
    const auto found = blocks_.find(root);
    if (found == blocks_.end() || made_before(root, index)) continue;
    const int block = found->second;
    blocks_.erase(found);
    if (!holds(block)) recorder_.free(block, index);
  }
}

bool GradientBlocks::holds(int block) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& entry) { return entry.second == block; });
}

int GradientBlocks::of(int root) const {
  const auto found = blocks_.find(root);
  return found == blocks_.end() ? -1 : found->second;
}

bool GradientBlocks::has_gradient(int tensor) const {
  switch (list_.tensors[at(tensor)].kept_as) {
    case ActivationClass::tokens:
    case ActivationClass::norm_statistics:
    case ActivationClass::dropout_mask:
    case ActivationClass::log_sum_exp: return false;
    default: return read_[at(root_of(list_, tensor))] != 0;
  }
}

/// An earlier op writes to the storage, so its gradient is still read.
bool GradientBlocks::made_before(int root, int index) const {
  for (int i = 0; i < index; ++i)
    for (const int output : list_.ops[at(i)].outputs)
      if (root_of(list_, output) == root) return true;
  return false;
}

}  // namespace reckon
