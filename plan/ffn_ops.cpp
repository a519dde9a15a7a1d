// Feed-forward blocks: dense (gated or not) and mixture of experts.
//
// Routed experts: rows are sent to the ranks that own their experts (all-to-all over the expert group), gathered over
// the tensor group where experts are split inside, multiplied, and sent back. Routing weights scale the activation, so
// the way back is a plain sum. Token counts are those of the busiest rank (parallel.expert_imbalance), whose experts
// share them evenly.
#include <algorithm>
#include <cmath>

#include "plan/op_list_builder.h"

namespace reckon {

namespace {

/// gate and up as halves of one buffer, or one hidden tensor.
struct FirstProduct {
  std::vector<int> outputs;  // of the product
  std::vector<int> read;     // by the activation
};

FirstProduct first_product(OpListBuilder& builder, std::int64_t rows, std::int64_t width) {
  if (!builder.model().gated_ffn) {
    const int hidden = builder.tensor("ffn_hidden", ActivationClass::ffn_hidden, rows * width);
    return {{hidden}, {hidden}};
  }
  const int whole = builder.tensor("gate_up", ActivationClass::transient, 2 * rows * width);
  const int gate = builder.view("gate", ActivationClass::gate, rows * width, whole);
  const int up = builder.view("up", ActivationClass::up, rows * width, whole);
  return {{whole, gate, up}, {gate, up}};
}

std::int64_t first_products(const ModelSpec& model) {
  return model.gated_ffn ? 2 : 1;
}

struct Routing {
  int probabilities = 0, indices = 0;
};

Routing add_router(OpListBuilder& builder, int input) {
  const MoeSpec& moe = builder.model().moe;
  const LocalShape& s = builder.shape;
  const int probabilities = builder.tensor32("router_probabilities", ActivationClass::router, s.rows * moe.experts);
  const int indices = builder.tensor32("router_indices", ActivationClass::tokens, s.rows * moe.experts_per_token);
  Op op;
  op.name = "router";
  op.kind = OpKind::gemm;
  op.gemm = {1, s.rows, moe.experts, s.hidden};
  op.inputs = {input};
  op.outputs = {probabilities, indices};
  op.saved = {input, probabilities, indices};
  op.weights = moe.experts * s.hidden + (moe.router_bias ? moe.experts : 0);
  op.backward_workspace = weight_gradient_workspace(builder, op.weights);
  op.launches = 4;  // product, softmax, top-k, counts
  op.backward_launches = 4;
  builder.add(op);
  return {probabilities, indices};
}

/// Rows in expert order on the busiest of the ranks that own the experts.
struct Dispatched {
  int rows = 0, weights = 0;    // tensors: [D, h], routing weight of each row
  std::int64_t exchanged = 0;   // D: rows of this tensor rank's share
  std::int64_t multiplied = 0;  // rows that the local experts multiply
};

/// Rows that the busiest rank receives where the mean is `rows`; at most all rows of the expert group.
std::int64_t busiest_rows(const OpListBuilder& builder, std::int64_t rows) {
  const auto ranks = static_cast<double>(builder.shape.expert);
  const double ratio = std::min(builder.plan.parallel.expert_imbalance, ranks);
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(rows) * ratio));
}

Dispatched add_dispatch(OpListBuilder& builder, int input, Routing routing) {
  const LocalShape& s = builder.shape;
  const std::int64_t chosen = builder.model().moe.experts_per_token;
  Dispatched d;
  d.exchanged = busiest_rows(builder, s.rows * chosen);
  d.multiplied = busiest_rows(builder, s.tokens * chosen);
  d.rows = builder.tensor("expert_input", ActivationClass::expert_input, d.exchanged * s.hidden);
  d.weights = builder.tensor32("routing_weights", ActivationClass::router, d.exchanged);
  const Bytes sent = builder.bytes(d.exchanged * s.hidden);
  Op op;
  op.name = "dispatch";
  op.kind = OpKind::communication;
  op.inputs = {input, routing.probabilities, routing.indices};
  op.outputs = {d.rows, d.weights};
  op.saved = {routing.indices};
  op.forward_traffic = op.backward_traffic = 2 * sent;
  if (s.expert > 1) {
    op.forward_collectives = op.backward_collectives = {{Collective::all_to_all, Group::expert, sent}};
    op.forward_workspace = op.backward_workspace = sent;
  }
  op.launches = op.backward_launches = 3;
  builder.add(op);
  return d;
}

/// A product of each local expert on its share of the rows. Gathers or scatters like the dense products.
void add_expert_product(OpListBuilder& builder, std::string_view name, bool first, int input, std::int64_t rows,
                        std::int64_t inputs, std::int64_t outputs, std::vector<int> output_tensors) {
  const LocalShape& s = builder.shape;
  const std::int64_t experts = builder.model().moe.experts / s.expert;
  Op op;
  op.name = name;
  op.kind = OpKind::gemm;
  op.gemm = {experts, (rows + experts - 1) / experts, outputs, inputs};
  op.inputs = op.saved = {input};
  op.outputs = std::move(output_tensors);
  op.weights = experts * (outputs * inputs + (builder.model().moe.expert_bias ? outputs : 0));
  op.backward_workspace = weight_gradient_workspace(builder, experts * outputs * inputs);
  op.launches = static_cast<int>(experts);
  op.backward_launches = static_cast<int>(2 * experts);
  if (s.sequence) {
    const Bytes whole = builder.bytes(rows * s.hidden);
    const CollectiveCall gather{Collective::all_gather, Group::tensor, whole};
    const CollectiveCall scatter{Collective::reduce_scatter, Group::tensor, whole};
    op.forward_collectives = {first ? gather : scatter};
    op.backward_collectives = first ? std::vector{gather, scatter} : std::vector{gather};
    op.forward_workspace = whole;
    op.backward_workspace += (first ? 2 : 1) * whole;
  }
  builder.add(op);
}

int add_experts(OpListBuilder& builder, const Dispatched& d) {
  const LocalShape& s = builder.shape;
  const std::int64_t width = builder.model().moe.expert_ffn_hidden / s.tensor;
  const FirstProduct product = first_product(builder, d.multiplied, width);
  add_expert_product(builder, "experts_gate_up", true, d.rows, d.multiplied, s.hidden,
                     first_products(builder.model()) * width, product.outputs);
  const int down_input =
      add_activation(builder, "experts_activation", product.read, d.multiplied, width, "expert_down_input");
  Op& activation = builder.list.ops.back();
  activation.inputs.push_back(d.weights);
  activation.saved.push_back(d.weights);
  const int output = builder.tensor("expert_output", ActivationClass::transient, d.exchanged * s.hidden);
  add_expert_product(builder, "experts_down", false, down_input, d.multiplied, width, s.hidden, {output});
  return output;
}

/// Sums the rows of each token, on the rank that it came from.
int add_combine(OpListBuilder& builder, int expert_output, int indices, std::int64_t exchanged) {
  const LocalShape& s = builder.shape;
  const int combined = builder.tensor("combined", ActivationClass::transient, s.rows * s.hidden);
  const Bytes sent = builder.bytes(exchanged * s.hidden);
  Op op;
  op.name = "combine";
  op.kind = OpKind::communication;
  op.inputs = {expert_output, indices};
  op.outputs = {combined};
  op.saved = {indices};
  op.forward_traffic = op.backward_traffic = sent + builder.bytes(s.rows * s.hidden);
  if (s.expert > 1) {
    op.forward_collectives = op.backward_collectives = {{Collective::all_to_all, Group::expert, sent}};
    op.forward_workspace = op.backward_workspace = sent;
  }
  if (s.tensor > 1 && !s.sequence) {
    const CollectiveCall sum{Collective::all_reduce, Group::tensor, builder.bytes(s.rows * s.hidden)};
    op.forward_collectives.push_back(sum);
    op.backward_collectives.push_back(sum);
  }
  op.launches = op.backward_launches = 3;
  builder.add(op);
  return combined;
}

/// Experts that every token uses; their output is added to the routed one in place. A gate, where there is one, scales
/// the activation like a routing weight.
int add_shared_experts(OpListBuilder& builder, int input, int combined) {
  const ModelSpec& model = builder.model();
  const LocalShape& s = builder.shape;
  const std::int64_t width = model.moe.shared_ffn_hidden / s.tensor;
  const FirstProduct product = first_product(builder, s.tokens, width);
  add_column_product(builder, "shared_gate_up", input, s.hidden, first_products(model) * width, false, product.outputs);
  const int down_input =
      add_activation(builder, "shared_activation", product.read, s.tokens, width, "shared_down_input");
  if (model.moe.shared_expert_gate) {
    Op& activation = builder.list.ops.back();
    activation.weights = s.hidden;
    activation.saved.push_back(input);
    activation.inputs.push_back(input);
    activation.launches += 1;
  }
  const int output = builder.tensor("shared_output", ActivationClass::transient, s.rows * s.hidden);
  add_row_product(builder, "shared_down", down_input, width, s.hidden, false, output);
  return add_residual(builder, "shared_sum", output, combined, "ffn_output", ActivationClass::transient);
}

}  // namespace

int add_dense_ffn(OpListBuilder& builder, int input) {
  const ModelSpec& model = builder.model();
  const LocalShape& s = builder.shape;
  const FirstProduct product = first_product(builder, s.tokens, s.ffn);
  add_column_product(builder, model.gated_ffn ? "gate_up" : "up", input, s.hidden, first_products(model) * s.ffn,
                     model.ffn_bias, product.outputs);
  const int down_input = add_activation(builder, "activation", product.read, s.tokens, s.ffn, "down_input");
  const int branch = builder.tensor("down_output", ActivationClass::transient, s.rows * s.hidden);
  add_row_product(builder, "down", down_input, s.ffn, s.hidden, model.ffn_bias, branch);
  return branch;
}

int add_moe_ffn(OpListBuilder& builder, int input) {
  const Routing routing = add_router(builder, input);
  const Dispatched dispatched = add_dispatch(builder, input, routing);
  const int expert_output = add_experts(builder, dispatched);
  const int combined = add_combine(builder, expert_output, routing.indices, dispatched.exchanged);
  return builder.model().moe.shared_ffn_hidden > 0 ? add_shared_experts(builder, input, combined) : combined;
}

}  // namespace reckon
