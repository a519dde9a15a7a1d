#include "plan/backward_values.h"

#include <algorithm>
#include <stdexcept>

namespace reckon {

namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

BackwardValues::BackwardValues(const OpList& list, const KeptSet& set, const GradientBlocks& gradients,
                               EventRecorder& recorder)
    : list_(list), kept_(list, set), set_(set), gradients_(gradients), recorder_(recorder) {
  needed_until_.reserve(list.tensors.size());
  available_.reserve(list.tensors.size());
  adopt_kept();
  find_last_reads();
}

void BackwardValues::adopt_kept() {
  for (const KeptTensor& kept : set_.kept) {
    const int root = root_of(list_, kept.tensor);
    const bool stays = !kept.encoded && kept_.keeps_whole(list_, root);
    const int block =
        stays ? block_number(list_, BlockKind::value, root) : block_number(list_, BlockKind::copy, kept.tensor);
    recorder_.adopt(block, stays ? held_bytes(list_, root) : kept.bytes, true);
    if (!kept.encoded) available_[kept.tensor] = block;
  }
}

/// Op whose backward is the last to read each storage.
void BackwardValues::find_last_reads() {
  for (std::size_t i = list_.ops.size(); i-- > 0;)
    for (const int tensor : list_.ops[i].saved) needed_until_[storage_name(list_, tensor)] = static_cast<int>(i);
  for (const auto& [name, kept] : kept_.by_name) needed_until_[name] = kept->needed_until;
}

void BackwardValues::restore_saved(int index) {
  for (const int tensor : list_.ops[at(index)].saved) {
    make_available(storage_name(list_, tensor), index, decoded_, static_cast<int>(list_.ops.size()));
    for (const int name : intermediates_) release_value(name, index);
    intermediates_.clear();
  }
}

void BackwardValues::release(int index) {
  for (const int name : decoded_) release_value(name, index);
  decoded_.clear();
  for (const auto& [name, until] : needed_until_) {
    if (until != index) continue;
    release_value(name, index);
    const auto kept = kept_.by_name.find(name);
    if (kept != kept_.by_name.end() && kept->second->encoded)
      recorder_.free(block_number(list_, BlockKind::copy, name), index);
  }
}

void BackwardValues::release_value(int name, int op) {
  const auto found = available_.find(name);
  if (found == available_.end()) return;
  const int block = found->second;
  available_.erase(found);
  const bool shared =
      std::any_of(available_.begin(), available_.end(), [&](const auto& entry) { return entry.second == block; });
  if (!shared && !gradients_.holds(block)) recorder_.free(block, op);
}

/// Makes the storage readable as it was before op `before`. What was decoded for that is added to `decoded`, what was
/// recomputed on the way to `intermediates_`.
void BackwardValues::make_available(int name, int op, std::vector<int>& decoded, int before) {
  if (available_.contains(name)) return;
  if (kept_.by_name.contains(name)) {
    const int block = block_number(list_, BlockKind::restored, name);
    recorder_.allocate(block, held_bytes(list_, name), false, op);
    available_[name] = block;
    decoded.push_back(name);
    return;
  }
  for (int j = before; j-- > 0;)
    for (const int output : list_.ops[at(j)].outputs)
      if (storage_name(list_, output) == name) return rerun(j, op);
  throw std::logic_error("a saved tensor is neither kept nor made by an op of its section");
}

/// Runs op `again` before the backward of `op`.
void BackwardValues::rerun(int index, int op) {
  const Op& again = list_.ops[at(index)];
  std::vector<int> decoded;
  for (const int input : again.inputs) make_available(storage_name(list_, input), op, decoded, index);
  for (const int output : again.outputs) {
    const int name = storage_name(list_, output);
    if (available_.contains(name) || kept_.by_name.contains(name)) continue;
    available_[name] = block_for(again, output, op);
    if (!needed_until_.contains(name)) intermediates_.push_back(name);
  }
  recorder_.workspace(again.forward_workspace, op);
  for (const int name : decoded) release_value(name, op);
}

/// Storage for a recomputed output: that of its whole, of the input it is made in place of, or a new one.
int BackwardValues::block_for(const Op& again, int output, int op) {
  const int root = root_of(list_, output);
  for (const std::vector<int>* tensors : {&again.inputs, &again.outputs})
    for (const int other : *tensors)
      if (const auto found = available_.find(storage_name(list_, other));
          found != available_.end() && root_of(list_, other) == root && holds_whole(found->second, root))
        return found->second;
  const int block = block_number(list_, BlockKind::restored, root);
  recorder_.allocate(block, held_bytes(list_, root), false, op);
  return block;
}

bool BackwardValues::holds_whole(int block, int root) const {
  return block == block_number(list_, BlockKind::value, root) ||
         block == block_number(list_, BlockKind::restored, root);
}

void BackwardValues::rerun_section() {
  KeptSet everything;
  for (const auto& [name, until] : needed_until_) {
    const Tensor& tensor = list_.tensors[at(name)];
    everything.kept.push_back({name, {tensor.format}, held_bytes(list_, name), false, until});
  }
  std::vector<int> decoded;
  make_available(0, 0, decoded, 0);
  const int input = block_number(list_, BlockKind::value, 0);
  if (available_[0] != input) {  // decoded: plays the input's part
    recorder_.free(available_[0], 0);
    recorder_.allocate(input, held_bytes(list_, 0), false, 0);
    available_[0] = input;
  }
  record_forward(list_, everything, BlockKind::rerun, -1, recorder_);
  const KeptView view(list_, everything);
  for (const KeptTensor& kept : everything.kept) {
    const int root = root_of(list_, kept.tensor);
    if (root == 0) continue;
    available_[kept.tensor] = view.keeps_whole(list_, root) ? block_number(list_, BlockKind::rerun, root)
                                                            : block_number(list_, BlockKind::copy, kept.tensor);
  }
}

}  // namespace reckon
