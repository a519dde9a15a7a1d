#include "runtime/train/op_call.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/train/counting_allocator.h"
#include "runtime/train/kernels/device/elementwise.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

/// Elements of the parts before `part` in its whole: they lie side by side in the order in which the op that makes the
/// whole lists them; an op in place leaves them where they are.
std::int64_t elements_before(const OpList& list, int part) {
  const int owner = list.tensors[static_cast<std::size_t>(part)].storage_of;
  for (const Op& op : list.ops) {
    const auto found = std::find(op.outputs.begin(), op.outputs.end(), part);
    if (found == op.outputs.end()) continue;
    if (op.outputs.front() != owner)
      return elements_before(list, op.inputs[static_cast<std::size_t>(found - op.outputs.begin())]);
    std::int64_t before = 0;
    for (auto other = op.outputs.begin() + 1; other != found; ++other)
      before += list.tensors[static_cast<std::size_t>(*other)].elements;
    return before;
  }
  throw std::logic_error("no op makes this part");
}

}  // namespace

const at::Tensor& OpCall::make_output(std::size_t i, std::int64_t rows, std::int64_t width) {
  const std::size_t tensor = index(op.outputs[i]);
  const Tensor& entry = list.tensors[tensor];
  if (rows * width != entry.elements) throw std::logic_error("an op made a tensor of another size than its list says");
  const bool statistics = entry.format != model.plan.precision.compute;
  const CategoryScope scope(is_kept[tensor] ? MemoryCategory::activations : MemoryCategory::transient);
  values[tensor] = at::empty({rows, width}, model.options(statistics ? model.accumulator : model.compute));
  return values[tensor];
}

void OpCall::set_output(std::size_t i, at::Tensor tensor) {
  const std::size_t target = index(op.outputs[i]);
  if (is_kept[target]) recategorize(tensor, MemoryCategory::activations);
  values[target] = std::move(tensor);
}

const at::Tensor& OpCall::output_gradient() const {
  for (const int output : op.outputs)
    if (gradients[index(output)].defined()) return gradients[index(output)];
  throw std::logic_error("backward of an op whose outputs have no gradient");
}

void OpCall::add_input_gradient(std::size_t i, const at::Tensor& gradient) {
  at::Tensor& target = gradients[index(op.inputs[i])];
  if (!target.defined()) {
    target = gradient;
    return;
  }
  with_element_type(target, [&]<class T>(T, auto... place) {
    kernels::add<T>(pointer<T>(target), pointer<const T>(gradient), target.numel(), place...);
  });
}

at::Tensor OpCall::input_gradient_part(std::size_t i) {
  const std::size_t part = index(op.inputs[i]);
  const int owner = list.tensors[part].storage_of;
  if (owner < 0) throw std::logic_error("this input is a whole buffer");
  const at::Tensor& value = values[part];
  const Tensor& entry = list.tensors[index(owner)];
  const std::int64_t rows = value.size(0), width = (entry.elements + entry.gradient_rest) / rows;
  at::Tensor& whole = gradients[index(owner)];
  if (!whole.defined()) whole = at::empty({rows, width}, value.options());
  gradients[part] = whole.view({rows, width}).narrow(1, elements_before(list, op.inputs[i]) / rows, value.size(1));
  return gradients[part];
}

at::Tensor OpCall::input_gradient_rest(std::size_t i) const {
  const std::size_t owner = index(list.tensors[index(op.inputs[i])].storage_of);
  const Tensor& entry = list.tensors[owner];
  const at::Tensor& whole = gradients[owner];
  const std::int64_t rest = entry.gradient_rest / whole.size(0);
  return whole.narrow(1, whole.size(1) - rest, rest);
}

void OpCall::make_input_gradients(std::int64_t rows, std::span<const std::int64_t> columns) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const int owner = list.tensors[index(op.inputs[i])].storage_of;
    if (owner < 0) throw std::logic_error("this input is a whole buffer");
    at::Tensor& whole = gradients[index(owner)];
    if (!whole.defined()) whole = temporary(rows, list.tensors[index(owner)].elements / rows);
    gradients[index(op.inputs[i])] = whole.narrow(1, first, columns[i]);
    first += columns[i];
  }
}

at::Tensor OpCall::temporary(std::int64_t rows, std::int64_t width) const {
  return at::empty({rows, width}, model.options(model.compute));
}

}  // namespace reckon
