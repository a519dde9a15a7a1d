#include "plan/kept_tensors.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "plan/flat_map.h"
#include "plan/memory_events.h"

namespace reckon {

namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

bool has_policy(ActivationClass activation_class) {
  const auto& classes = policy_classes();
  return std::find(classes.begin(), classes.end(), activation_class) != classes.end();
}

/// Op that makes the tensor; -1 for the section's inputs.
int producer_of(const OpList& list, int tensor) {
  for (std::size_t i = 0; i < list.ops.size(); ++i) {
    const std::vector<int>& outputs = list.ops[i].outputs;
    if (std::find(outputs.begin(), outputs.end(), tensor) != outputs.end()) return static_cast<int>(i);
  }
  return -1;
}

bool is_saved(const OpList& list, int tensor) {
  return std::any_of(list.ops.begin(), list.ops.end(), [&](const Op& op) {
    return std::find(op.saved.begin(), op.saved.end(), tensor) != op.saved.end();
  });
}

/// Mode `elementwise` drops what one memory-bound pass over saved tensors restores: norm outputs, activation outputs.
bool elementwise_restores(const OpList& list, int tensor) {
  const ActivationClass c = list.tensors[at(tensor)].kept_as;
  if (c != ActivationClass::qkv_input && c != ActivationClass::ffn_input && c != ActivationClass::down_input &&
      c != ActivationClass::head_input)
    return false;
  const int producer = producer_of(list, tensor);
  if (producer < 0 || list.ops[at(producer)].kind != OpKind::memory_bound) return false;
  const std::vector<int>& inputs = list.ops[at(producer)].inputs;
  return std::all_of(inputs.begin(), inputs.end(), [&](int input) { return is_saved(list, input); });
}

/// How one saved tensor is kept; empty = dropped and recomputed.
std::optional<Storage> wanted_storage(const Plan& plan, const OpList& list, Recompute recompute, int stage, int index) {
  const Tensor& tensor = list.tensors[at(index)];
  const Storage as_computed{tensor.format};
  if (tensor.kept_as == ActivationClass::logits && plan.kernels.loss == LossKernel::chunked) return std::nullopt;
  if (!has_policy(tensor.kept_as)) return as_computed;
  if (recompute == Recompute::elementwise && elementwise_restores(list, index)) return std::nullopt;
  if (recompute == Recompute::selective && tensor.kept_as == ActivationClass::attention_scores) return std::nullopt;
  const ClassPolicy policy = class_policy(plan, tensor.kept_as, stage);
  if (policy.recompute) return std::nullopt;
  if (payload_bits(policy.format) >= payload_bits(tensor.format)) return as_computed;
  return with_fixed_blocks({policy.format, plan.activations.block, plan.activations.scale});
}

bool more_precise(const Storage& a, const Storage& b) {
  return payload_bits(a.format) > payload_bits(b.format);
}

/// For each tensor that names a saved storage: what is kept of it. Outer optional: saved at all.
using Wanted = std::vector<std::optional<std::optional<Storage>>>;

Wanted wanted_storages(const Plan& plan, const OpList& list, Recompute recompute, int stage) {
  Wanted wanted(list.tensors.size());
  for (const Op& op : list.ops)
    for (const int tensor : op.saved) {
      auto& slot = wanted[at(storage_name(list, tensor))];
      const auto storage = wanted_storage(plan, list, recompute, stage, tensor);
      if (!slot) slot = storage;
      else if (storage && (!*slot || more_precise(*storage, **slot))) *slot = storage;
    }
  if (wanted[0] && !*wanted[0]) *wanted[0] = Storage{list.tensors[0].format};
  return wanted;
}

KeptSet full_recompute(const Plan& plan, const OpList& list, int stage) {
  KeptSet set;
  const Storage storage =
      wanted_storage(plan, list, Recompute::none, stage, 0).value_or(Storage{list.tensors[0].format});
  const bool encoded = storage.format != list.tensors[0].format;
  set.kept.push_back({0, storage, storage_bytes(storage, list.tensors[0].elements), encoded, 0});
  for (std::size_t i = 0; i < list.ops.size(); ++i) set.recomputed_ops.push_back(static_cast<int>(i));
  return set;
}

/// Marks the ops that restore `tensor` from what is kept.
void mark_recomputed(const OpList& list, const Wanted& wanted, int tensor, std::vector<bool>& marked) {
  const auto& slot = wanted[at(storage_name(list, tensor))];
  if (slot && *slot) return;  // kept
  const int producer = producer_of(list, tensor);
  if (producer < 0 || marked[at(producer)]) return;
  marked[at(producer)] = true;
  for (const int input : list.ops[at(producer)].inputs) mark_recomputed(list, wanted, input, marked);
}

/// Position (op whose backward runs) at which each storage is read last. A dropped tensor is restored before the last
/// op, in forward order, that saved it, and from then on held; so what it is restored from is read there.
FlatMap<int> last_reads(const OpList& list, const Wanted& wanted, const std::vector<int>& recomputed_ops) {
  FlatMap<int> last, first;
  last.reserve(list.tensors.size());
  first.reserve(list.tensors.size());
  for (std::size_t i = 0; i < list.ops.size(); ++i)
    for (const int tensor : list.ops[i].saved) {
      const int name = storage_name(list, tensor);
      if (!last.contains(name)) last[name] = static_cast<int>(i);
      first[name] = static_cast<int>(i);
    }
  for (auto op = recomputed_ops.rbegin(); op != recomputed_ops.rend(); ++op) {  // readers before what they read
    int position = static_cast<int>(list.ops.size());
    for (const int tensor : list.ops[at(*op)].outputs) {
      const int name = storage_name(list, tensor);
      const bool kept = wanted[at(name)] && *wanted[at(name)];
      if (const auto need = first.find(name); !kept && need != first.end()) position = std::min(position, need->second);
    }
    for (const int tensor : list.ops[at(*op)].inputs) {
      const int name = storage_name(list, tensor);
      const bool saved = wanted[at(name)].has_value();
      const auto earlier = [position](int known) { return std::min(known, position); };
      if (last.contains(name)) last[name] = earlier(last[name]);
      if (!saved) first[name] = first.contains(name) ? earlier(first[name]) : position;
    }
  }
  return last;
}

}  // namespace

Bytes KeptSet::bytes() const {
  Bytes sum;
  for (const KeptTensor& tensor : kept) sum += tensor.bytes;
  return sum;
}

int storage_name(const OpList& list, int tensor) {
  const Tensor& t = list.tensors[at(tensor)];
  const bool whole = t.storage_of >= 0 && list.tensors[at(t.storage_of)].elements == t.elements;
  return whole ? t.storage_of : tensor;
}

Bytes held_bytes(const OpList& list, int tensor) {
  const bool given = list.tensors[at(tensor)].kept_as == ActivationClass::tokens && producer_of(list, tensor) < 0;
  return given ? Bytes(0) : list.tensors[at(tensor)].bytes();
}

Bytes micro_batch_bytes(const Plan& plan) {
  const std::int64_t tensors = plan.has_documents() ? 3 : 2;
  return Bytes(tensors * 4 * plan.batch.micro_batch * plan.batch.sequence_length / plan.context());
}

Bytes constant_bytes(const Plan& plan) {
  const std::int64_t positions =
      plan.has_documents() ? 0 : plan.batch.micro_batch * plan.batch.sequence_length / plan.context();
  const Bytes fixed = Bytes(4 * positions) + plan.memory.workspace;
  if (plan.model.position != Position::rope) return fixed;
  const ModelSpec& model = plan.model;
  const auto rotated = model.is_mla() ? model.mla.qk_rope_head_dim
                                      : std::llround(static_cast<double>(model.head_dim) * model.rope_fraction);
  return fixed + Bytes(4 * plan.batch.sequence_length * rotated);
}

ClassPolicy class_policy(const Plan& plan, ActivationClass activation_class, int stage) {
  const ActivationSpec& activations = plan.activations;
  if (const auto found = activations.classes_by_stage.find(activation_class);
      found != activations.classes_by_stage.end())
    return found->second.at(std::min(at(stage), found->second.size() - 1));
  if (const auto found = activations.classes.find(activation_class); found != activations.classes.end())
    return found->second;
  if (!is_block_scaled(activations.stored)) return {false, tensor_format(plan)};
  if (activations.bits_by_stage.empty()) return {false, activations.stored};
  const int bits = storage_bits(plan, stage);
  return {false, bits == 16 ? tensor_format(plan) : with_bits(activations.stored, bits)};
}

int storage_bits(const Plan& plan, std::int64_t stage) {
  const ActivationSpec& activations = plan.activations;
  if (!is_block_scaled(activations.stored)) return payload_bits(tensor_format(plan));
  if (activations.bits_by_stage.empty()) return payload_bits(activations.stored);
  const std::size_t last = activations.bits_by_stage.size() - 1;  // one entry = all stages
  return activations.bits_by_stage[std::min(static_cast<std::size_t>(stage), last)];
}

KeptSet kept_tensors(const Plan& plan, const OpList& list, Recompute recompute, int stage) {
  if (recompute == Recompute::full) return full_recompute(plan, list, stage);
  const Wanted wanted = wanted_storages(plan, list, recompute, stage);
  KeptSet set;
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    if (!wanted[i] || !*wanted[i]) continue;
    const Storage& storage = **wanted[i];
    const Tensor& tensor = list.tensors[i];
    const bool encoded = storage.format != tensor.format;
    set.kept.push_back({static_cast<int>(i), storage,
                        encoded ? storage_bytes(storage, tensor.elements) : held_bytes(list, static_cast<int>(i)),
                        encoded, 0});
  }
  std::vector<bool> marked(list.ops.size(), false);
  for (const Op& op : list.ops)
    for (const int tensor : op.saved) mark_recomputed(list, wanted, tensor, marked);
  for (std::size_t i = 0; i < marked.size(); ++i)
    if (marked[i]) set.recomputed_ops.push_back(static_cast<int>(i));
  const FlatMap<int> until = last_reads(list, wanted, set.recomputed_ops);
  for (KeptTensor& kept : set.kept) kept.needed_until = until.at(kept.tensor);
  return set;
}

TransientPeak transient_peak(const OpList& list, const KeptSet& kept) {
  const Bytes total = kept.bytes();
  return {highest_bytes(forward_events(list, kept), input_bytes(list)) - total,
          highest_bytes(backward_events(list, kept), total + output_gradient_bytes(list)) - total};
}

}  // namespace reckon
