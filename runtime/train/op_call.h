// One op at work: its row of the op list, its weights, and the tensors of its section by index.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>
#include <vector>

#include "plan/layer_ops.h"
#include "runtime/train/micro_batch.h"
#include "runtime/train/rank_model.h"

namespace reckon {

/// Weights of one op as views of the flat buffers; undefined where it has none.
struct OpParameters {
  at::Tensor weight, bias;
  at::Tensor weight_gradient, bias_gradient;  // accumulator precision
  at::Tensor second_weight, second_gradient;  // learned positions
};

struct OpCall {
  const RankModel& model;
  const OpList& list;
  const Op& op;
  const OpParameters& parameters;
  MicroBatch& batch;
  std::vector<at::Tensor>& values;     // by tensor index; undefined = freed
  std::vector<at::Tensor>& gradients;  // by tensor index
  const std::vector<char>& is_kept;    // by tensor index: its storage is kept for backward

  const at::Tensor& input(std::size_t i) const { return values[index(op.inputs[i])]; }
  const at::Tensor& output(std::size_t i) const { return values[index(op.outputs[i])]; }

  /// Allocates output i as [rows, width] in its list format, booked as activation if it is kept, else as transient.
  const at::Tensor& make_output(std::size_t i, std::int64_t rows, std::int64_t width);
  /// Gives output i a tensor that exists already (a view, an in-place result, or a library's result).
  void set_output(std::size_t i, at::Tensor tensor);

  /// Gradient of the first output that has one.
  const at::Tensor& output_gradient() const;
  bool has_input_gradient(std::size_t i) const { return gradients[index(op.inputs[i])].defined(); }
  const at::Tensor& input_gradient(std::size_t i) const { return gradients[index(op.inputs[i])]; }
  /// The input's gradient is `gradient`, added to what other readers of the input have contributed.
  void add_input_gradient(std::size_t i, const at::Tensor& gradient);
  /// Room for input i's gradient inside the gradient of the buffer that input i is a part of.
  at::Tensor input_gradient_part(std::size_t i);
  /// Room for what rounding those gradients has cut off, behind them in each row: Tensor::gradient_rest.
  at::Tensor input_gradient_rest(std::size_t i) const;
  /// Room for the gradients of all inputs, which are parts of buffers of `rows` rows: input i is `columns[i]` wide and
  /// begins where those before it end. For ops whose backward does not read its inputs.
  void make_input_gradients(std::int64_t rows, std::span<const std::int64_t> columns);

  /// A dense temporary like the compute tensors.
  at::Tensor temporary(std::int64_t rows, std::int64_t width) const;

 private:
  static std::size_t index(int tensor) { return static_cast<std::size_t>(tensor); }
};

/// What an op of the list does on this rank.
struct OpFunctions {
  void (*forward)(OpCall&);
  void (*backward)(OpCall&);
};

/// Functions of an op of the list, or nullptr if the runtime cannot execute it yet.
const OpFunctions* find_op_functions(std::string_view name);

}  // namespace reckon
