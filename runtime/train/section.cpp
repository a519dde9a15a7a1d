#include "runtime/train/section.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "plan/errors.h"
#include "plan/split_mix.h"
#include "runtime/train/counting_allocator.h"

namespace reckon {
namespace {

std::size_t at_index(int index) {
  return static_cast<std::size_t>(index);
}

void require_executable(const Op& op) {
  if (find_op_functions(op.name) == nullptr)
    throw ConfigError(
        fmt::format("this model cannot be trained yet: its layers need the op '{}', which the runtime does "
                    "not have; prediction and simulation work",
                    op.name));
}

}  // namespace

SectionLists::SectionLists(const RankModel& model, Section kind, Recompute recompute, int stage)
    : section(kind),
      list(section_ops(model.plan, kind, single_document_work(model.plan))),
      kept(kept_tensors(model.plan, list, recompute, stage)),
      root(storage_roots(list)),
      aliases(storage_aliases(list)),
      last_use(list.tensors.size(), -1),
      retention(list, kept),
      encode_component(model.timer.component("forward.quantize")),
      decode_component(model.timer.component("backward.dequantize")) {
  for (std::size_t o = 0; o < list.ops.size(); ++o) {
    const Op& op = list.ops[o];
    require_executable(op);
    for (const std::vector<int>* touched : {&op.inputs, &op.outputs})
      for (const int tensor : *touched) last_use[at_index(root[at_index(tensor)])] = static_cast<int>(o);
    const std::string name(op.name);
    forward_component.push_back(model.timer.component("forward." + name));
    backward_component.push_back(model.timer.component("backward." + name));
    recompute_component.push_back(model.timer.component("recompute." + name));
  }
  if (section != Section::head) result = list.ops.back().outputs.front();
  if (recompute == Recompute::full) rerun.emplace(list, everything_saved(list));
}

void SectionRunner::run_forward(std::size_t op, MicroBatch& batch, Values& values, const std::vector<char>& stays,
                                bool again) const {
  Values no_gradients;
  const StepTimer::Span span(model_.timer, again ? lists_->recompute_component[op] : lists_->forward_component[op]);
  OpCall call{model_, lists_->list, lists_->list.ops[op], parameters_[op], batch, values, no_gradients, stays};
  find_op_functions(call.op.name)->forward(call);
}

/// Encodes or copies out a part that is kept while its storage goes.
void SectionRunner::keep_apart(const KeptTensor& kept, const Values& values, const MicroBatch& batch,
                               SavedActivations& saved) const {
  const std::vector<int>& names = lists_->aliases[at_index(kept.tensor)];
  const auto there = std::find_if(names.begin(), names.end(), [&](int t) { return values[at_index(t)].defined(); });
  if (there == names.end()) throw std::logic_error("a tensor is to be kept that no op has made");
  const at::Tensor& value = values[at_index(*there)];
  if (!kept.encoded) {
    const at::Tensor copy = at::empty(value.sizes(), value.options());
    copy.copy_(value);
    for (const int name : names) saved.values[at_index(name)] = copy;
    return;
  }
  const StepTimer::Span span(model_.timer, lists_->encode_component);
  const std::uint64_t place =
      split_mix(static_cast<std::uint64_t>(number_ + 2)) + static_cast<std::uint64_t>(kept.tensor);
  const EncodeRounding rounding{model_.plan.activations.rounding, split_mix(batch.rounding_seed ^ place)};
  saved.encoded[kept.tensor] = encode(value, kept.storage, rounding);
}

void SectionRunner::retire(int root, Values& values, const Retention& retention, int handed_on, const MicroBatch& batch,
                           SavedActivations& saved) const {
  const bool stays = retention.stays[at_index(root)] != 0;
  for (const KeptTensor& kept : retention.kept_of[at_index(root)]) {
    if (kept.encoded || !stays) keep_apart(kept, values, batch, saved);
    else
      for (const int name : lists_->aliases[at_index(kept.tensor)])
        saved.values[at_index(name)] = values[at_index(name)];
  }
  if (root == handed_on) return;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (lists_->root[i] == root) values[i].reset();
}

void SectionRunner::run_all(MicroBatch& batch, Values& values, const Retention& retention, int handed_on,
                            SavedActivations& saved, bool again) const {
  // What a second forward pass makes lives for this backward pass only.
  const std::vector<char> none(values.size(), 0), &booked_as_kept = again ? none : retention.stays_by_tensor;
  for (std::size_t op = 0; op < lists_->list.ops.size(); ++op) {
    run_forward(op, batch, values, booked_as_kept, again);
    const CategoryScope scope(again ? MemoryCategory::transient : MemoryCategory::activations);  // of copies
    for (std::size_t root = 0; root < values.size(); ++root)
      if (lists_->last_use[root] == static_cast<int>(op))
        retire(static_cast<int>(root), values, retention, handed_on, batch, saved);
  }
}

at::Tensor SectionRunner::forward(at::Tensor input, MicroBatch& batch, SavedActivations& saved) const {
  const SectionLists& lists = *lists_;
  Values values(lists.list.tensors.size());
  saved.values.resize(values.size());
  if (lists.retention.stays[0] != 0) recategorize(input, MemoryCategory::activations);
  values[0] = std::move(input);
  for (std::size_t i = 1; i < values.size(); ++i)
    if (lists.list.tensors[i].kept_as == ActivationClass::tokens) values[i] = batch.targets;
  const int handed_on = lists.result < 0 ? -1 : lists.root[at_index(lists.result)];
  run_all(batch, values, lists.retention, handed_on, saved, false);
  return lists.result < 0 ? at::Tensor() : values[at_index(lists.result)];
}

/// The backward pass of one section: what each op's backward reads is decoded for that op alone, or recomputed once and
/// held until the last op that reads it.
class SectionRunner::BackwardPass {
 public:
  BackwardPass(const SectionRunner& run, MicroBatch& batch, SavedActivations saved)
      : run_(run),
        lists_(*run.lists_),
        batch_(batch),
        saved_(std::move(saved)),
        gradients_(lists_.list.tensors.size()) {}

  at::Tensor run(at::Tensor output_gradient) {
    if (lists_.result >= 0) gradients_[at_index(lists_.result)] = std::move(output_gradient);
    if (lists_.rerun) rerun_section();
    for (std::size_t op = lists_.list.ops.size(); op-- > 0;) run_op(op);
    return std::move(gradients_[0]);
  }

 private:
  int name_of_storage(int tensor) const { return storage_name(lists_.list, tensor); }
  bool is_there(int name) const { return saved_.values[at_index(name)].defined(); }
  void provide(int name, const at::Tensor& value) {
    for (const int alias : lists_.aliases[at_index(name)]) saved_.values[at_index(alias)] = value;
  }
  void drop(int name) { provide(name, {}); }

  void rerun_section() {
    std::vector<int> decoded;
    make_available(0, lists_.list.ops.size(), decoded);
    SavedActivations made;
    made.values.resize(saved_.values.size());
    saved_.values.swap(made.values);  // the section's input and what it is given; filled anew as the ops run
    run_.run_all(batch_, made.values, *lists_.rerun, -1, saved_, true);
  }

  /// `decoded` collects what was decoded for this.
  void make_available(int name, std::size_t before, std::vector<int>& decoded) {
    if (is_there(name)) return;
    if (const auto kept = saved_.encoded.find(name); kept != saved_.encoded.end()) {
      const StepTimer::Span span(run_.model_.timer, lists_.decode_component);
      provide(name, decode(kept->second, lists_.retention.by_name[at_index(name)]->storage, run_.model_.compute));
      decoded.push_back(name);
      return;
    }
    for (std::size_t op = before; op-- > 0;)
      for (const int output : lists_.list.ops[op].outputs)
        if (name_of_storage(output) == name) return rerun(op);
    throw std::logic_error("a saved tensor is neither kept nor made by an op of its section");
  }

  /// Runs an op again. What is there already, or is kept in fewer bits, stays as it is.
  void rerun(std::size_t op) {
    const Op& again = lists_.list.ops[op];
    std::vector<int> decoded;
    for (const int input : again.inputs) make_available(name_of_storage(input), op, decoded);
    std::vector<at::Tensor> before;
    for (const int output : again.outputs) before.push_back(saved_.values[at_index(output)]);
    const std::vector<char> nothing_stays(saved_.values.size(), 0);
    run_.run_forward(op, batch_, saved_.values, nothing_stays, true);
    for (std::size_t i = 0; i < again.outputs.size(); ++i) {
      const int name = name_of_storage(again.outputs[i]);
      at::Tensor& value = saved_.values[at_index(again.outputs[i])];
      if (before[i].defined() || saved_.encoded.contains(name)) {
        value = before[i];
        continue;
      }
      provide(name, at::Tensor(value));
      if (lists_.retention.needed_until[at_index(name)] < 0) intermediates_.push_back(name);
    }
    before.clear();
    for (const int name : decoded) drop(name);
  }

  void run_op(std::size_t op) {
    const Op& row = lists_.list.ops[op];
    std::vector<int> decoded;
    for (const int tensor : row.saved) {
      make_available(name_of_storage(tensor), lists_.list.ops.size(), decoded);
      for (const int name : intermediates_) drop(name);
      intermediates_.clear();
    }
    {
      const StepTimer::Span span(run_.model_.timer, lists_.backward_component[op]);
      OpCall call{run_.model_, lists_.list,   row,        run_.parameters_[op],
                  batch_,      saved_.values, gradients_, lists_.retention.stays_by_tensor};
      find_op_functions(row.name)->backward(call);
    }
    for (const int output : row.outputs) gradients_[at_index(output)].reset();
    for (const int name : decoded) drop(name);
    for (std::size_t name = 0; name < saved_.values.size(); ++name) {
      if (lists_.retention.needed_until[name] != static_cast<int>(op)) continue;
      drop(static_cast<int>(name));
      saved_.encoded.erase(static_cast<int>(name));
    }
  }

  const SectionRunner& run_;
  const SectionLists& lists_;
  MicroBatch& batch_;
  SavedActivations saved_;
  Values gradients_;
  std::vector<int> intermediates_;  // recomputed on the way to what an op saved
};

at::Tensor SectionRunner::backward(at::Tensor output_gradient, MicroBatch& batch, SavedActivations& saved) const {
  return BackwardPass(*this, batch, std::exchange(saved, {})).run(std::move(output_gradient));
}

}  // namespace reckon
