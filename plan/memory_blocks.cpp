#include "plan/memory_blocks.h"

#include <algorithm>
#include <stdexcept>

namespace reckon {

namespace {

const Tensor& tensor_at(const OpList& list, int index) {
  return list.tensors[static_cast<std::size_t>(index)];
}

}  // namespace

int block_number(const OpList& list, BlockKind kind, int index) {
  const int n = static_cast<int>(std::max(list.tensors.size(), list.ops.size()));
  return static_cast<int>(kind) * n + index;
}

int root_of(const OpList& list, int tensor) {
  const int whole = tensor_at(list, tensor).storage_of;
  return whole >= 0 ? whole : tensor;
}

int output_tensor(const OpList& list) {
  const int tensor = list.ops.back().outputs.front();
  return tensor_at(list, tensor).kept_as == ActivationClass::transient ? tensor : -1;
}

EventRecorder::EventRecorder(const OpList& list) : list_(list) {
  events_.reserve(4 * list.tensors.size());  // more than most sections have
  live_.reserve(list.tensors.size());
}

void EventRecorder::allocate(int block, Bytes bytes, bool kept, int op) {
  if (bytes.value > 0) events_.push_back({true, block, bytes, kept, op});
  live_[block] = {bytes, kept};
}

void EventRecorder::free(int block, int op) {
  const auto found = live_.find(block);
  if (found == live_.end()) throw std::logic_error("a block is freed that is not allocated");
  const auto [bytes, kept] = found->second;
  if (bytes.value > 0) events_.push_back({false, block, bytes, kept, op});
  live_.erase(found);
}

void EventRecorder::workspace(Bytes bytes, int op) {
  if (bytes.value <= 0) return;
  const int block = block_number(list_, BlockKind::workspace, op);
  allocate(block, bytes, false, op);
  free(block, op);
}

KeptView::KeptView(const OpList& list, const KeptSet& set) {
  by_name.reserve(set.kept.size());
  plain_bytes.reserve(set.kept.size());
  for (const KeptTensor& kept : set.kept) {
    by_name[kept.tensor] = &kept;
    if (!kept.encoded) plain_bytes[root_of(list, kept.tensor)] += kept.bytes;
  }
}

bool KeptView::keeps_whole(const OpList& list, int root) const {
  const auto found = plain_bytes.find(root);
  return found != plain_bytes.end() && found->second >= held_bytes(list, root);
}

}  // namespace reckon
