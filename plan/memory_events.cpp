#include "plan/memory_events.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "plan/flat_map.h"

namespace reckon {

namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

int root_of(const OpList& list, int tensor) {
  const int whole = list.tensors[at(tensor)].storage_of;
  return whole >= 0 ? whole : tensor;
}

/// Numbers of blocks: n tensors give n numbers to each kind.
enum class BlockKind { value, copy, gradient, restored, workspace, rerun };

int block_number(const OpList& list, BlockKind kind, int index) {
  const int n = static_cast<int>(std::max(list.tensors.size(), list.ops.size()));
  return static_cast<int>(kind) * n + index;
}

/// The section's result, -1 if its last op only keeps statistics (the loss).
int output_tensor(const OpList& list) {
  const int tensor = list.ops.back().outputs.front();
  return list.tensors[at(tensor)].kept_as == ActivationClass::transient ? tensor : -1;
}

class Recorder {
 public:
  explicit Recorder(const OpList& list) : list_(list) {}

  void allocate(int block, Bytes bytes, bool kept, int op) {
    if (bytes.value > 0) events_.push_back({true, block, bytes, kept, op});
    live_[block] = {bytes, kept};
  }
  /// A block that was there before.
  void adopt(int block, Bytes bytes, bool kept) { live_[block] = {bytes, kept}; }
  void free(int block, int op) {
    const auto found = live_.find(block);
    if (found == live_.end()) throw std::logic_error("a block is freed that is not allocated");
    if (found->second.first.value > 0) events_.push_back({false, block, found->second.first, found->second.second, op});
    live_.erase(found);
  }
  void workspace(Bytes bytes, int op) {
    if (bytes.value <= 0) return;
    const int block = block_number(list_, BlockKind::workspace, op);
    allocate(block, bytes, false, op);
    free(block, op);
  }
  std::vector<MemoryEvent> take() { return std::move(events_); }

 private:
  const OpList& list_;
  std::vector<MemoryEvent> events_;
  FlatMap<std::pair<Bytes, bool>> live_;
};

struct KeptView {
  FlatMap<const KeptTensor*> by_name;  // storage name -> how it is kept
  FlatMap<Bytes> plain_bytes;          // root -> bytes of it that are kept as computed

  KeptView(const OpList& list, const KeptSet& set) {
    for (const KeptTensor& kept : set.kept) {
      by_name[kept.tensor] = &kept;
      if (!kept.encoded) plain_bytes[root_of(list, kept.tensor)] += kept.bytes;
    }
  }
  /// The storage itself stays because its kept parts cover it.
  bool keeps_whole(const OpList& list, int root) const {
    const auto found = plain_bytes.find(root);
    return found != plain_bytes.end() && found->second >= held_bytes(list, root);
  }
};

/// Runs the section forward. `values` is where new storages are numbered: normally value, rerun for a second forward.
void run_forward(const OpList& list, const KeptSet& set, BlockKind values, int handed_on, Recorder& recorder) {
  const KeptView kept(list, set);
  const bool first_time = values == BlockKind::value;  // what a second forward makes lives for this backward only
  FlatMap<int> last_use;
  for (std::size_t i = 0; i < list.ops.size(); ++i) {
    for (const int tensor : list.ops[i].inputs) last_use[root_of(list, tensor)] = static_cast<int>(i);
    for (const int tensor : list.ops[i].outputs) last_use[root_of(list, tensor)] = static_cast<int>(i);
  }
  std::vector<char> live(list.tensors.size(), 0);
  const auto becomes_live = [&](int root) { return std::exchange(live[at(root)], char{1}) == 0; };
  for (const int tensor : list.ops.front().inputs) becomes_live(root_of(list, tensor));  // the section's input
  const auto number = [&](int root) { return block_number(list, root == 0 ? BlockKind::value : values, root); };
  for (std::size_t i = 0; i < list.ops.size(); ++i) {
    const Op& op = list.ops[i];
    const int index = static_cast<int>(i);
    for (const int tensor : op.inputs)  // a second input of the section (targets): there before, counted from here
      if (const int root = root_of(list, tensor); becomes_live(root))
        recorder.allocate(number(root), held_bytes(list, root), first_time && kept.keeps_whole(list, root), index);
    for (const int tensor : op.outputs)
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

class BackwardWalk {
 public:
  BackwardWalk(const OpList& list, const KeptSet& set)
      : list_(list), set_(set), kept_(list, set), recorder_(list), read_(list.tensors.size(), 0) {
    adopt_kept();
    find_uses();
    for (const Op& op : list.ops)
      for (const int tensor : op.inputs) read_[at(root_of(list, tensor))] = 1;
    if (const int output = output_tensor(list); output >= 0) {
      const int root = root_of(list, output);
      recorder_.adopt(block_number(list, BlockKind::gradient, root), held_bytes(list, root), false);
      gradient_[root] = block_number(list, BlockKind::gradient, root);
    }
  }

  int input_gradient() const {
    const auto found = gradient_.find(0);
    return found == gradient_.end() ? -1 : found->second;
  }

  std::vector<MemoryEvent> run() {
    if (set_.recomputed_ops.size() == list_.ops.size()) rerun_section();
    for (int i = static_cast<int>(list_.ops.size()) - 1; i >= 0; --i) run_op(i);
    return recorder_.take();
  }

 private:
  void adopt_kept() {
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
  void find_uses() {
    for (std::size_t i = list_.ops.size(); i-- > 0;)
      for (const int tensor : list_.ops[i].saved) needed_until_[storage_name(list_, tensor)] = static_cast<int>(i);
    for (const auto& [name, kept] : kept_.by_name) needed_until_[name] = kept->needed_until;
  }

  bool is_available(int name) const { return available_.contains(name); }

  void release(int name, int op) {
    const auto found = available_.find(name);
    if (found == available_.end()) return;
    const int block = found->second;
    available_.erase(found);
    const bool shared =
        std::any_of(available_.begin(), available_.end(), [&](const auto& entry) { return entry.second == block; });
    const bool is_gradient =
        std::any_of(gradient_.begin(), gradient_.end(), [&](const auto& entry) { return entry.second == block; });
    if (!shared && !is_gradient) recorder_.free(block, op);
  }

  /// Makes the storage readable as it was before op `before`. What was decoded for that is added to `decoded`, what was
  /// recomputed on the way to `intermediates_`.
  void make_available(int name, int op, std::vector<int>& decoded, int before) {
    if (is_available(name)) return;
    if (const auto kept = kept_.by_name.find(name); kept != kept_.by_name.end()) {
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

  /// Runs op `j` again before the backward of `op`.
  void rerun(int j, int op) {
    const Op& again = list_.ops[at(j)];
    std::vector<int> decoded;
    for (const int input : again.inputs) make_available(storage_name(list_, input), op, decoded, j);
    for (const int output : again.outputs) {
      const int name = storage_name(list_, output);
      if (is_available(name) || kept_.by_name.contains(name)) continue;
      available_[name] = value_block_of(again, output, op);
      if (!needed_until_.contains(name)) intermediates_.push_back(name);
    }
    recorder_.workspace(again.forward_workspace, op);
    for (const int name : decoded) release(name, op);
  }

  /// Storage for a recomputed output: that of its whole, of the input it is made in place of, or a new one.
  int value_block_of(const Op& again, int output, int op) {
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

  bool holds_whole(int block, int root) const {
    return block == block_number(list_, BlockKind::value, root) ||
           block == block_number(list_, BlockKind::restored, root);
  }

  void rerun_section() {
    KeptSet everything;
    for (const auto& [name, until] : needed_until_) {
      const Tensor& tensor = list_.tensors[at(name)];
      everything.kept.push_back({name, {tensor.format}, held_bytes(list_, name), false, until});
    }
    std::vector<int> decoded;
    make_available(0, 0, decoded, 0);
    if (available_[0] != input_block(list_)) {  // decoded: plays the input's part
      recorder_.free(available_[0], 0);
      recorder_.allocate(input_block(list_), held_bytes(list_, 0), false, 0);
      available_[0] = input_block(list_);
    }
    run_forward(list_, everything, BlockKind::rerun, -1, recorder_);
    const KeptView view(list_, everything);
    for (const KeptTensor& kept : everything.kept) {
      const int root = root_of(list_, kept.tensor);
      if (root == 0) continue;
      available_[kept.tensor] = view.keeps_whole(list_, root) ? block_number(list_, BlockKind::rerun, root)
                                                              : block_number(list_, BlockKind::copy, kept.tensor);
    }
  }

  bool has_gradient(int tensor) const {
    switch (list_.tensors[at(tensor)].kept_as) {
      case ActivationClass::tokens:
      case ActivationClass::norm_statistics:
      case ActivationClass::dropout_mask:
      case ActivationClass::log_sum_exp: return false;
      default: return read_[at(root_of(list_, tensor))] != 0;
    }
  }

  void make_gradients(const Op& op, int index) {
    for (const int input : op.inputs) {
      if (!has_gradient(input)) continue;
      const int root = root_of(list_, input);
      if (gradient_.contains(root)) {
        const bool own = std::any_of(op.outputs.begin(), op.outputs.end(),
                                     [&](int output) { return root_of(list_, output) == root; });
        const bool first_of_op = std::exchange(touched_[at(root)], char{1}) == 0;
        if (op.kind == OpKind::gemm && !own && first_of_op) recorder_.workspace(held_bytes(list_, input), index);
        continue;
      }
      touched_[at(root)] = 1;
      if (op.gradient_in_place) {
        gradient_[root] = gradient_.at(root_of(list_, op.outputs.front()));
      } else if (op.gradient_over_input && input == op.inputs.front()) {
        gradient_[root] = available_.at(storage_name(list_, input));
      } else {
        const int block = block_number(list_, BlockKind::gradient, root);
        recorder_.allocate(block, held_bytes(list_, root), false, index);
        gradient_[root] = block;
      }
    }
  }

  void release_gradients(const Op& op, int index) {
    for (const int output : op.outputs) {
      const int root = root_of(list_, output);
      const auto found = gradient_.find(root);
      if (found == gradient_.end() || made_before(root, index)) continue;
      const int block = found->second;
      gradient_.erase(found);
      const bool shared =
          std::any_of(gradient_.begin(), gradient_.end(), [&](const auto& entry) { return entry.second == block; });
      if (!shared) recorder_.free(block, index);
    }
  }

  /// An earlier op writes to the storage, so its gradient is still read.
  bool made_before(int root, int index) const {
    for (int i = 0; i < index; ++i)
      for (const int output : list_.ops[at(i)].outputs)
        if (root_of(list_, output) == root) return true;
    return false;
  }

  void run_op(int index) {
    const Op& op = list_.ops[at(index)];
    std::vector<int> decoded;
    for (const int tensor : op.saved) {
      make_available(storage_name(list_, tensor), index, decoded, static_cast<int>(list_.ops.size()));
      for (const int name : intermediates_) release(name, index);
      intermediates_.clear();
    }
    touched_.assign(list_.tensors.size(), 0);
    make_gradients(op, index);
    recorder_.workspace(op.backward_workspace, index);
    release_gradients(op, index);
    for (const int name : decoded) release(name, index);
    for (const auto& [name, until] : needed_until_)
      if (until == index) free_kept(name, index);
  }

  void free_kept(int name, int index) {
    release(name, index);
    const auto kept = kept_.by_name.find(name);
    if (kept != kept_.by_name.end() && kept->second->encoded)
      recorder_.free(block_number(list_, BlockKind::copy, name), index);
  }

  const OpList& list_;
  const KeptSet& set_;
  KeptView kept_;
  Recorder recorder_;
  FlatMap<int> needed_until_;         // storage name -> op index
  FlatMap<int> available_;            // storage name -> block that holds its value
  FlatMap<int> gradient_;             // root -> block
  std::vector<int> intermediates_;    // recomputed on the way to what an op saved
  std::vector<char> read_, touched_;  // roots that some op reads; roots whose gradient this op has reached
};

}  // namespace

int input_block(const OpList& list) {
  return block_number(list, BlockKind::value, 0);
}

int input_gradient_block(const OpList& list) {
  KeptSet everything;
  std::set<int> names;
  for (const Op& op : list.ops)
    for (const int tensor : op.saved)
      if (const int name = storage_name(list, tensor); names.insert(name).second)
        everything.kept.push_back({name, {}, held_bytes(list, name), false, 0});
  for (KeptTensor& kept : everything.kept) kept.needed_until = -1;  // nothing is freed: only gradients matter here
  BackwardWalk walk(list, everything);
  walk.run();
  return walk.input_gradient();
}

int output_block(const OpList& list) {
  const int tensor = output_tensor(list);
  return tensor < 0 ? -1 : block_number(list, BlockKind::value, root_of(list, tensor));
}

int output_gradient_block(const OpList& list) {
  const int tensor = output_tensor(list);
  return tensor < 0 ? -1 : block_number(list, BlockKind::gradient, root_of(list, tensor));
}

Bytes input_bytes(const OpList& list) {
  return held_bytes(list, 0);
}

bool input_is_kept(const OpList& list, const KeptSet& kept) {
  return KeptView(list, kept).keeps_whole(list, 0);
}

Bytes output_gradient_bytes(const OpList& list) {
  const int tensor = output_tensor(list);
  return tensor < 0 ? Bytes(0) : held_bytes(list, root_of(list, tensor));
}

std::vector<MemoryEvent> forward_events(const OpList& list, const KeptSet& kept) {
  Recorder recorder(list);
  recorder.adopt(input_block(list), input_bytes(list), input_is_kept(list, kept));
  const int output = output_tensor(list);
  run_forward(list, kept, BlockKind::value, output < 0 ? -1 : root_of(list, output), recorder);
  return recorder.take();
}

std::vector<MemoryEvent> backward_events(const OpList& list, const KeptSet& kept) {
  return BackwardWalk(list, kept).run();
}

Bytes highest_bytes(const std::vector<MemoryEvent>& events, Bytes before) {
  Bytes now = before, highest = before;
  for (const MemoryEvent& event : events) {
    now += event.allocates ? event.bytes : -event.bytes;
    highest = std::max(highest, now);
  }
  return highest;
}

}  // namespace reckon
