// The table from op names of the list to what the runtime does. Products and their collectives are in
// product_functions.cpp, attention in context_functions.cpp.
#include <ATen/ATen.h>

#include <map>

#include "runtime/train/context_functions.h"
#include "runtime/train/kernels/device/elementwise.h"
#include "runtime/train/op_call.h"
#include "runtime/train/ops/dispatch.h"
#include "runtime/train/ops/ffn_activation.h"
#include "runtime/train/ops/head_norm.h"
#include "runtime/train/ops/norm.h"
#include "runtime/train/product_functions.h"

namespace reckon {
namespace {

NormWeights norm_weights(const OpParameters& p) {
  return {p.weight, p.bias, p.weight_gradient, p.bias_gradient};
}

void norm_forward_op(OpCall& call) {
  const at::Tensor& x = call.input(0);
  const std::int64_t rows = rows_of(x), width = width_of(x);
  const ModelSpec& spec = call.model.plan.model;
  const at::Tensor& y = call.make_output(0, rows, width);
  const at::Tensor& statistics = call.make_output(1, rows, spec.norm == Norm::layer_norm ? 2 : 1);
  norm_forward(spec.norm, spec.norm_epsilon, x, norm_weights(call.parameters), y, statistics);
}

void norm_backward_op(OpCall& call) {
  const at::Tensor& x = call.input(0);
  const bool accumulate = call.has_input_gradient(0);
  const at::Tensor dx = accumulate ? call.input_gradient(0) : call.temporary(rows_of(x), width_of(x));
  norm_backward(call.model.plan.model.norm, call.output_gradient(), x, norm_weights(call.parameters), call.output(1),
                dx, accumulate);
  if (!accumulate) call.add_input_gradient(0, dx);
}

/// Queries and keys lie side by side in the fused buffer and turn together.
void turn(const OpCall& call, const at::Tensor& query, const at::Tensor& key, int direction) {
  const LocalShape& s = call.model.shape;
  rotate_heads(query, s.heads, s.head_dim, call.batch.positions, call.model.rotary, direction);
  rotate_heads(key, s.kv_heads, s.head_dim, call.batch.positions, call.model.rotary, direction);
}

/// Queries first, then keys: in the normed buffer, in the statistics of a token, and in the weights.
void qk_norm_forward(OpCall& call) {
  const LocalShape& s = call.model.shape;
  const std::int64_t queries = s.heads * s.head_dim, keys = s.kv_heads * s.head_dim;
  const double epsilon = call.model.plan.model.norm_epsilon;
  const at::Tensor normed = call.make_output(0, s.tokens, queries + keys);
  const at::Tensor statistics = call.make_output(3, s.tokens, s.heads + s.kv_heads);
  const at::Tensor& weight = call.parameters.weight;
  call.set_output(1, normed.narrow(1, 0, queries));
  call.set_output(2, normed.narrow(1, queries, keys));
  head_norm_forward(epsilon, call.input(0), weight.narrow(0, 0, s.head_dim), call.output(1),
                    statistics.narrow(1, 0, s.heads));
  head_norm_forward(epsilon, call.input(1), weight.narrow(0, s.head_dim, s.head_dim), call.output(2),
                    statistics.narrow(1, s.heads, s.kv_heads));
}

void qk_norm_backward(OpCall& call) {
  const LocalShape& s = call.model.shape;
  const at::Tensor& statistics = call.output(3);
  const auto backward = [&](std::size_t part, std::int64_t first_head, std::int64_t heads) {
    const auto weights = [&](const at::Tensor& both) {
      return both.narrow(0, static_cast<std::int64_t>(part) * s.head_dim, s.head_dim);
    };
    const at::Tensor& dy = call.gradients[static_cast<std::size_t>(call.op.outputs[part + 1])];
    head_norm_backward(dy, call.input(part), weights(call.parameters.weight), statistics.narrow(1, first_head, heads),
                       call.input_gradient_part(part), weights(call.parameters.weight_gradient));
  };
  backward(0, 0, s.heads);
  backward(1, s.heads, s.kv_heads);
}

void rope_forward(OpCall& call) {
  const at::Tensor query = call.input(0), key = call.input(1);
  turn(call, query, key, +1);
  call.set_output(0, query);
  call.set_output(1, key);
}

void rope_backward(OpCall& call) {
  const at::Tensor query = call.gradients[static_cast<std::size_t>(call.op.outputs[0])];
  const at::Tensor key = call.gradients[static_cast<std::size_t>(call.op.outputs[1])];
  turn(call, query, key, -1);
  call.add_input_gradient(0, query);
  call.add_input_gradient(1, key);
}

/// The second input of a gated activation; undefined for a plain one.
at::Tensor up_of(const OpCall& call) {
  return call.model.plan.model.gated_ffn ? call.input(1) : at::Tensor();
}

void activation_forward_op(OpCall& call) {
  const at::Tensor& gate = call.input(0);
  activation_forward(call.model.plan.model.activation, gate, up_of(call),
                     call.make_output(0, gate.size(0), gate.size(1)));
}

void activation_backward_op(OpCall& call) {
  const Activation activation = call.model.plan.model.activation;
  const at::Tensor& gate = call.input(0);
  if (!call.model.plan.model.gated_ffn) {
    const at::Tensor dx = call.temporary(gate.size(0), gate.size(1));
    activation_backward(activation, call.output_gradient(), gate, {}, dx);
    call.add_input_gradient(0, dx);
    return;
  }
  const at::Tensor gate_gradient = call.input_gradient_part(0);
  call.input_gradient_part(1);
  const at::Tensor both = gate_gradient.as_strided({gate.size(0), 2 * gate.size(1)}, gate_gradient.strides(), 0);
  activation_backward(activation, call.output_gradient(), gate, call.input(1), both);
}

void residual_forward(OpCall& call) {
  const at::Tensor branch = call.input(1);
  with_element_type(branch, [&]<class T>(T, auto... place) {
    kernels::add<T>(pointer<T>(branch), pointer<const T>(call.input(0)), branch.numel(), place...);
  });
  call.set_output(0, branch);
}

void residual_backward(OpCall& call) {
  const at::Tensor gradient = call.output_gradient();
  call.add_input_gradient(0, gradient);
  call.add_input_gradient(1, gradient);
}

void loss_forward(OpCall& call) {
  const at::Tensor& log_sum_exp = call.make_output(0, call.input(0).size(0), 1);
  call.batch.loss_sum += cross_entropy_forward(call.input(0), call.input(1), call.model.vocabulary,
                                               log_sum_exp.view({-1}), call.batch.device_loss);
}

void loss_backward(OpCall& call) {
  const at::Tensor logits = call.input(0);
  cross_entropy_backward(logits, call.input(1), call.model.vocabulary, call.output(0), call.batch.loss_scale);
  call.add_input_gradient(0, logits);
}

}  // namespace

const OpFunctions* find_op_functions(std::string_view name) {
  constexpr OpFunctions kNorm{norm_forward_op, norm_backward_op};
  constexpr OpFunctions kColumns{column_product_forward, column_product_backward};
  constexpr OpFunctions kRows{row_product_forward, row_product_backward};
  constexpr OpFunctions kResidual{residual_forward, residual_backward};
  static const std::map<std::string_view, OpFunctions> table{
      {"embedding", {embedding_forward, embedding_backward}},
      {"embedding_norm", kNorm},
      {"attention_norm", kNorm},
      {"qkv", kColumns},
      {"qk_norm", {qk_norm_forward, qk_norm_backward}},
      {"rope", {rope_forward, rope_backward}},
      {"attention", {attention_forward_op, attention_backward_op}},
      {"scatter_heads", {scatter_heads_forward, scatter_heads_backward}},
      {"gather_heads", {gather_heads_forward, gather_heads_backward}},
      {"projection", kRows},
      {"attention_post_norm", kNorm},
      {"attention_residual", kResidual},
      {"ffn_norm", kNorm},
      {"gate_up", kColumns},
      {"up", kColumns},
      {"activation", {activation_forward_op, activation_backward_op}},
      {"down", kRows},
      {"ffn_post_norm", kNorm},
      {"ffn_residual", kResidual},
      {"final_norm", kNorm},
      {"head", kColumns},
      {"loss", {loss_forward, loss_backward}},
  };
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace reckon
