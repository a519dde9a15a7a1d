#include "runtime/train/section.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "plan/errors.h"
#include "runtime/train/counting_allocator.h"

namespace reckon {
namespace {

std::size_t at_index(int index) {
  return static_cast<std::size_t>(index);
}

int root_of(const OpList& list, int tensor) {
  while (list.tensors[at_index(tensor)].storage_of >= 0) tensor = list.tensors[at_index(tensor)].storage_of;
  return tensor;
}

void require_executable(const Op& op) {
  if (find_op_functions(op.name) == nullptr)
    throw ConfigError(
        fmt::format("this model cannot be trained yet: its layers need the op '{}', which the runtime does "
                    "not have; prediction and simulation work",
                    op.name));
}

/// Drops every tensor whose storage `is_needed` does not want any more.
template <class Needed>
void release(const SectionLists& lists, std::vector<at::Tensor>& values, Needed is_needed) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].defined() && !is_needed(at_index(lists.root[i]))) values[i].reset();
}

}  // namespace

SectionLists::SectionLists(const RankModel& model, Section kind, Recompute recompute, int stage)
    : section(kind),
      list(section_ops(model.plan, kind, single_document_work(model.plan))),
      kept(kept_tensors(model.plan, list, recompute, stage)),
      recomputes_all(recompute == Recompute::full) {
  const std::size_t tensors = list.tensors.size();
  for (std::size_t i = 0; i < tensors; ++i) root.push_back(root_of(list, static_cast<int>(i)));
  std::vector<char> kept_root(tensors, 0);
  for (const KeptTensor& tensor : kept.kept) kept_root[at_index(root[at_index(tensor.tensor)])] = 1;
  for (std::size_t i = 0; i < tensors; ++i) is_kept.push_back(kept_root[at_index(root[i])]);

  last_reader.assign(tensors, -1);
  first_saver.assign(tensors, -1);
  producer.assign(tensors, -1);
  for (std::size_t o = 0; o < list.ops.size(); ++o) {
    const Op& op = list.ops[o];
    const int index = static_cast<int>(o);
    require_executable(op);
    for (const int tensor : op.inputs) last_reader[at_index(root[at_index(tensor)])] = index;
    for (const int tensor : op.outputs) {
      last_reader[at_index(root[at_index(tensor)])] = index;
      producer[at_index(tensor)] = index;
    }
    for (const int tensor : op.saved) {
      int& first = first_saver[at_index(root[at_index(tensor)])];
      if (first < 0) first = index;
    }
    const std::string name(op.name);
    forward_component.push_back(model.timer.component("forward." + name));
    backward_component.push_back(model.timer.component("backward." + name));
    recompute_component.push_back(model.timer.component("recompute." + name));
  }
  if (section != Section::head)
    last_reader[at_index(root[at_index(list.ops.back().outputs.back())])] = static_cast<int>(list.ops.size());
}

void SectionRun::run_forward(std::size_t op, MicroBatch& batch, std::vector<at::Tensor>& values, bool again) const {
  const std::vector<char> nothing_is_kept(lists_->list.tensors.size(), 0);
  std::vector<at::Tensor> no_gradients;
  const StepTimer::Span span(model_.timer, again ? lists_->recompute_component[op] : lists_->forward_component[op]);
  OpCall call{model_, lists_->list, lists_->list.ops[op], parameters_[op],
              batch,  values,       no_gradients,         again ? nothing_is_kept : lists_->is_kept};
  find_op_functions(call.op.name)->forward(call);
}

at::Tensor SectionRun::forward(at::Tensor input, MicroBatch& batch, SavedActivations& saved) const {
  const SectionLists& lists = *lists_;
  std::vector<at::Tensor> values(lists.list.tensors.size());
  if (lists.is_kept[0]) recategorize(input, MemoryCategory::activations);
  values[0] = std::move(input);
  for (std::size_t i = 1; i < values.size(); ++i)
    if (lists.list.tensors[i].kept_as == ActivationClass::tokens) values[i] = batch.targets;
  for (std::size_t op = 0; op < lists.list.ops.size(); ++op) {
    run_forward(op, batch, values, false);
    release(lists, values,
            [&](std::size_t root) { return lists.is_kept[root] || lists.last_reader[root] > static_cast<int>(op); });
  }
  at::Tensor result;
  if (lists.section != Section::head) result = values[at_index(lists.list.ops.back().outputs.back())];
  release(lists, values, [&](std::size_t root) { return lists.is_kept[root] != 0; });
  saved.keep(std::move(values));
  return result;
}

void SectionRun::restore(int tensor, MicroBatch& batch, std::vector<at::Tensor>& values) const {
  if (values[at_index(tensor)].defined()) return;
  const auto op = at_index(lists_->producer[at_index(tensor)]);
  for (const int input : lists_->list.ops[op].inputs) restore(input, batch, values);
  run_forward(op, batch, values, true);
}

void SectionRun::restore_for(std::size_t op, MicroBatch& batch, std::vector<at::Tensor>& values) const {
  for (const int tensor : lists_->list.ops[op].saved) restore(tensor, batch, values);
}

at::Tensor SectionRun::backward(at::Tensor output_gradient, MicroBatch& batch, SavedActivations& saved) const {
  const SectionLists& lists = *lists_;
  std::vector<at::Tensor> values = saved.take(), gradients(lists.list.tensors.size());
  if (lists.section != Section::head)
    gradients[at_index(lists.list.ops.back().outputs.back())] = std::move(output_gradient);
  const auto needed_by_ops_up_to = [&](int op) {
    return [&lists, op](std::size_t root) { return lists.first_saver[root] >= 0 && lists.first_saver[root] <= op; };
  };
  if (lists.recomputes_all)
    for (std::size_t op = 0; op < lists.list.ops.size(); ++op) {
      run_forward(op, batch, values, true);
      release(lists, values, [&](std::size_t root) {
        return lists.first_saver[root] >= 0 || lists.last_reader[root] > static_cast<int>(op);
      });
    }
  for (std::size_t op = lists.list.ops.size(); op-- > 0;) {
    restore_for(op, batch, values);
    release(lists, values, needed_by_ops_up_to(static_cast<int>(op)));
    {
      const StepTimer::Span span(model_.timer, lists.backward_component[op]);
      OpCall call{model_, lists.list, lists.list.ops[op], parameters_[op], batch, values, gradients, lists.is_kept};
      find_op_functions(call.op.name)->backward(call);
    }
    for (const int output : lists.list.ops[op].outputs) gradients[at_index(output)].reset();
    release(lists, values, needed_by_ops_up_to(static_cast<int>(op) - 1));
  }
  return std::move(gradients[0]);
}

}  // namespace reckon
