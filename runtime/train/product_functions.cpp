#include "runtime/train/product_functions.h"

#include <ATen/ATen.h>

#include "runtime/train/kernels/device/elementwise.h"
#include "runtime/train/ops/dispatch.h"
#include "runtime/train/ops/matrix_product.h"

namespace reckon {
namespace {

/// All rows of a tensor whose rows are spread over the tensor group; the tensor itself without sequence parallelism.
at::Tensor gathered_rows(const OpCall& call, const at::Tensor& part) {
  if (!call.model.shape.sequence) return part;
  const at::Tensor whole = call.temporary(call.model.shape.tokens, part.size(1));
  call.model.tensor->all_gather(part, whole).wait();
  return whole;
}

/// Fills output 0 with the sum over the tensor group of `make(target)`'s results.
template <class Make>
void summed_output(OpCall& call, std::int64_t width, Make make) {
  const LocalShape& s = call.model.shape;
  if (s.sequence) {
    const at::Tensor partial = call.temporary(s.tokens, width);
    make(partial);
    call.model.tensor->reduce_scatter(partial, call.make_output(0, s.rows, width)).wait();
    return;
  }
  const at::Tensor& output = call.make_output(0, s.tokens, width);
  make(output);
  if (s.tensor > 1) call.model.tensor->all_reduce(output).wait();
}

void add_bias(const at::Tensor& y, const at::Tensor& bias) {
  if (!bias.defined()) return;
  with_element_type(y, [&]<class T>(T, auto... place) {
    kernels::add_bias<T>(pointer<T>(y), pointer<const T>(bias), y.size(0), y.size(1), place...);
  });
}

void add_bias_gradient(const at::Tensor& dy, const at::Tensor& gradient) {
  if (!gradient.defined()) return;
  with_element_type(dy, [&]<class T>(T, auto... place) {
    if constexpr (sizeof...(place) == 0)
      kernels::bias_gradient<T>(pointer<const T>(dy), pointer<kernels::Accumulator<T>>(gradient), dy.size(0),
                                dy.size(1));
    else at::Tensor(gradient).add_(dy.sum(0, false, gradient.scalar_type()));
  });
}

}  // namespace

void column_product_forward(OpCall& call) {
  const std::int64_t outputs = call.parameters.weight.size(0), tokens = call.model.shape.tokens;
  const at::Tensor x = gathered_rows(call, call.input(0));
  const at::Tensor y = call.make_output(0, tokens, outputs);
  linear_forward(x, call.parameters.weight, y);
  add_bias(y, call.parameters.bias);
  std::int64_t first = 0;
  for (std::size_t part = 1; part < call.op.outputs.size(); ++part) {  // q | k | v, gate | up
    const std::int64_t width = call.list.tensors[static_cast<std::size_t>(call.op.outputs[part])].elements / tokens;
    call.set_output(part, y.narrow(1, first, width));
    first += width;
  }
}

void column_product_backward(OpCall& call) {
  const LocalShape& s = call.model.shape;
  const at::Tensor& weight = call.parameters.weight;
  const at::Tensor dy = call.output_gradient().view({s.tokens, weight.size(0)});
  const at::Tensor x = gathered_rows(call, call.input(0));
  const at::Tensor dx = call.temporary(s.tokens, weight.size(1));
  linear_input_gradient(dy, weight, dx);
  at::Tensor own_dx = dx;
  TimedCall sum;  // overlaps with the weight gradient
  if (s.sequence) {
    own_dx = call.temporary(s.rows, weight.size(1));
    sum = call.model.tensor->reduce_scatter(dx, own_dx);
  } else if (s.tensor > 1) {
    sum = call.model.tensor->all_reduce(dx);
  }
  linear_weight_gradient(dy, x, call.parameters.weight_gradient);
  add_bias_gradient(dy, call.parameters.bias_gradient);
  sum.wait();
  call.add_input_gradient(0, own_dx);
}

void row_product_forward(OpCall& call) {
  const at::Tensor& weight = call.parameters.weight;
  summed_output(call, weight.size(0), [&](const at::Tensor& target) { linear_forward(call.input(0), weight, target); });
  add_bias(call.output(0), call.parameters.bias);
}

void row_product_backward(OpCall& call) {
  const at::Tensor& weight = call.parameters.weight;
  add_bias_gradient(call.output_gradient(), call.parameters.bias_gradient);
  const at::Tensor dy = gathered_rows(call, call.output_gradient());
  const at::Tensor dx = call.temporary(dy.size(0), weight.size(1));
  linear_input_gradient(dy, weight, dx);
  linear_weight_gradient(dy, call.input(0), call.parameters.weight_gradient);
  call.add_input_gradient(0, dx);
}

namespace {

/// Positions of the rows that this rank has of the residual stream.
at::Tensor own_positions(const OpCall& call) {
  const LocalShape& s = call.model.shape;
  return s.sequence ? call.batch.positions.narrow(0, call.model.coordinates.tensor * s.rows, s.rows)
                    : call.batch.positions;
}

}  // namespace

void embedding_forward(OpCall& call) {
  const at::Tensor& table = call.parameters.weight;
  const std::int64_t width = table.size(1);
  with_element_type(table, [&]<class T>(T, auto... place) {
    summed_output(call, width, [&](const at::Tensor& target) {
      kernels::gather_rows<T>(pointer<const T>(table), pointer<std::int32_t>(call.input(0)), pointer<T>(target),
                              target.size(0), width, call.model.vocabulary.first_column, table.size(0), place...);
    });
    const at::Tensor& positions_table = call.parameters.second_weight;
    if (!positions_table.defined()) return;
    const at::Tensor positions = own_positions(call);
    const std::int64_t offset = call.model.plan.model.position_offset;  // row of position 0
    if constexpr (sizeof...(place) > 0) {
      at::Tensor(call.output(0)).add_(positions_table.index_select(0, positions.to(at::kLong).add(offset)));
      return;
    }
    for (std::int64_t row = 0; row < call.output(0).size(0); ++row)
      kernels::add<T>(pointer<T>(call.output(0)) + row * width,
                      pointer<const T>(positions_table) + (pointer<std::int32_t>(positions)[row] + offset) * width,
                      width);
  });
}

void embedding_backward(OpCall& call) {
  const at::Tensor own_dy = call.output_gradient(), dy = gathered_rows(call, own_dy);
  with_element_type(dy, [&]<class T>(T, auto... place) {
    using A = kernels::Accumulator<T>;
    const auto scatter = [&](const at::Tensor& rows, const at::Tensor& indices, const at::Tensor& gradient,
                             std::int64_t first) {
      kernels::scatter_rows<T>(pointer<const T>(rows), pointer<std::int32_t>(indices), pointer<A>(gradient),
                               rows.size(0), rows.size(1), first, gradient.size(0), place...);
    };
    scatter(dy, call.input(0), call.parameters.weight_gradient, call.model.vocabulary.first_column);
    if (call.parameters.second_gradient.defined())
      scatter(own_dy, own_positions(call), call.parameters.second_gradient, -call.model.plan.model.position_offset);
  });
}

}  // namespace reckon
