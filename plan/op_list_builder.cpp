#include "plan/op_list_builder.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace reckon {

LocalShape local_shape(const Plan& plan) {
  const ModelSpec& model = plan.model;
  const ParallelSpec& parallel = plan.parallel;
  LocalShape s;
  s.tensor = parallel.tensor;
  s.ulysses = parallel.ulysses;
  s.ring = parallel.ring;
  s.expert = parallel.expert;
  s.sequence = parallel.sequence && parallel.tensor > 1;
  s.tokens = plan.batch.micro_batch * plan.batch.sequence_length / plan.context();
  s.rows = s.sequence ? s.tokens / s.tensor : s.tokens;
  s.hidden = model.hidden;
  s.heads = model.heads / s.tensor;
  s.kv_heads = std::max<std::int64_t>(1, model.kv_heads / s.tensor);
  s.head_dim = model.is_mla() ? model.mla.qk_nope_head_dim + model.mla.qk_rope_head_dim : model.head_dim;
  s.value_dim = model.is_mla() ? model.mla.v_head_dim : model.head_dim;
  s.ffn = model.ffn_hidden / s.tensor;
  s.vocabulary = (model.vocabulary + s.tensor - 1) / s.tensor;
  s.element_bytes = payload_bits(tensor_format(plan)) / 8;
  if (s.tokens < 1 || s.rows < 1 || s.heads < s.ulysses || s.hidden < 1)
    throw std::logic_error(
        "the op list needs a checked plan: tokens, heads and hidden size must divide by the degrees");
  return s;
}

int OpListBuilder::tensor(std::string_view name, ActivationClass kept_as, std::int64_t elements) {
  list.tensors.push_back({name, kept_as, elements, tensor_format(plan), -1});
  return static_cast<int>(list.tensors.size()) - 1;
}

int OpListBuilder::view(std::string_view name, ActivationClass kept_as, std::int64_t elements, int whole) {
  const int root = list.tensors[static_cast<std::size_t>(whole)].storage_of;
  list.tensors.push_back({name, kept_as, elements, tensor_format(plan), root >= 0 ? root : whole});
  return static_cast<int>(list.tensors.size()) - 1;
}

int OpListBuilder::tensor32(std::string_view name, ActivationClass kept_as, std::int64_t elements) {
  list.tensors.push_back({name, kept_as, elements, NumberFormat::fp32, -1});
  return static_cast<int>(list.tensors.size()) - 1;
}

int OpListBuilder::tensor8(std::string_view name, ActivationClass kept_as, std::int64_t elements) {
  list.tensors.push_back({name, kept_as, elements, NumberFormat::int8, -1});
  return static_cast<int>(list.tensors.size()) - 1;
}

Op& OpListBuilder::add(Op op) {
  list.ops.push_back(std::move(op));
  return list.ops.back();
}

std::int64_t OpListBuilder::elements(int tensor_index) const {
  return list.tensors[static_cast<std::size_t>(tensor_index)].elements;
}

int add_norm(OpListBuilder& builder, std::string_view name, int input, std::int64_t rows, std::int64_t width,
             std::int64_t weights, std::string_view output_name, ActivationClass output_class) {
  const std::int64_t per_row = builder.model().norm == Norm::layer_norm ? 2 : 1;
  const int output = builder.tensor(output_name, output_class, rows * width);
  const int statistics = builder.tensor32("norm_statistics", ActivationClass::norm_statistics, rows * per_row);
  Op op;
  op.name = name;
  op.inputs = {input};
  op.outputs = {output, statistics};
  op.saved = {input, statistics};
  op.forward_traffic = builder.bytes(2 * rows * width);
  op.backward_traffic = builder.bytes(4 * rows * width);  // x, dy and the residual gradient in, the sum out
  op.weights = weights;
  builder.add(op);
  return output;
}

Bytes weight_gradient_workspace(const OpListBuilder& builder, std::int64_t weights) {
  const NumberFormat stored = builder.plan.gradients.stored, compute = tensor_format(builder.plan);
  const bool widens =
      !is_block_scaled(stored) && (!builder.plan.hardware.device.is_cpu || multiplies_in_fp32(builder.plan));
  return stored == compute || widens ? Bytes(0) : builder.bytes(weights);
}

bool multiplies_in_fp32(const Plan& plan) {
  const DeviceSpec& device = plan.hardware.device;
  if (!device.is_cpu || plan.precision.compute != NumberFormat::bf16) return false;
  const auto narrow = device.peak.find(NumberFormat::bf16), wide = device.peak.find(NumberFormat::fp32);
  return wide != device.peak.end() && (narrow == device.peak.end() || narrow->second <= wide->second);
}

namespace {

/// Operands and result in fp32; the input gradient's are gone before the weight gradient's are made.
void add_fp32_copies(Op& op) {
  const std::int64_t x = op.gemm.m * op.gemm.k, weight = op.gemm.k * op.gemm.n, y = op.gemm.m * op.gemm.n;
  op.forward_workspace += Bytes(4 * (x + weight + y));
  op.backward_workspace += Bytes(4 * (y + weight + x));
}

Op product(const OpListBuilder& builder, std::string_view name, int input, GemmShape gemm, bool bias,
           std::vector<int> outputs) {
  Op op;
  op.name = name;
  op.kind = OpKind::gemm;
  op.gemm = gemm;
  op.inputs = {input};
  op.outputs = std::move(outputs);
  op.saved = {input};
  op.weights = gemm.batch * gemm.n * gemm.k + (bias ? gemm.batch * gemm.n : 0);
  op.backward_workspace = weight_gradient_workspace(builder, gemm.batch * gemm.n * gemm.k);
  if (multiplies_in_fp32(builder.plan)) add_fp32_copies(op);
  return op;
}

}  // namespace

Op& add_column_product(OpListBuilder& builder, std::string_view name, int input, std::int64_t inputs,
                       std::int64_t outputs, bool bias, std::vector<int> output_tensors) {
  const LocalShape& s = builder.shape;
  Op op = product(builder, name, input, {1, s.tokens, outputs, inputs}, bias, std::move(output_tensors));
  const Bytes whole = builder.bytes(s.tokens * inputs);
  if (s.sequence) {
    op.forward_collectives = {{Collective::all_gather, Group::tensor, whole}};
    op.backward_collectives = {{Collective::all_gather, Group::tensor, whole},
                               {Collective::reduce_scatter, Group::tensor, whole}};
    op.forward_workspace += whole;
    op.backward_workspace += 2 * whole;  // the gathered input and the whole input gradient
  } else if (s.tensor > 1) {
    op.backward_collectives = {{Collective::all_reduce, Group::tensor, whole}};
  }
  return builder.add(std::move(op));
}

Op& add_row_product(OpListBuilder& builder, std::string_view name, int input, std::int64_t inputs, std::int64_t outputs,
                    bool bias, int output) {
  const LocalShape& s = builder.shape;
  Op op = product(builder, name, input, {1, s.tokens, outputs, inputs}, bias, {output});
  const Bytes whole = builder.bytes(s.tokens * outputs);
  if (s.sequence) {
    op.forward_collectives = {{Collective::reduce_scatter, Group::tensor, whole}};
    op.backward_collectives = {{Collective::all_gather, Group::tensor, whole}};
    op.forward_workspace += whole;
    op.backward_workspace += whole;
  } else if (s.tensor > 1) {
    op.forward_collectives = {{Collective::all_reduce, Group::tensor, whole}};
  }
  return builder.add(std::move(op));
}

int add_residual(OpListBuilder& builder, std::string_view name, int stream, int branch, std::string_view sum_name,
                 ActivationClass sum_class) {
  const std::int64_t elements = builder.elements(branch);
  const int sum = builder.view(sum_name, sum_class, elements, branch);
  Op op;
  op.name = name;
  op.inputs = {stream, branch};
  op.outputs = {sum};
  op.gradient_in_place = true;
  op.forward_traffic = builder.bytes(3 * elements);
  op.backward_launches = 0;
  builder.add(op);
  return sum;
}

void add_dropout(OpListBuilder& builder, std::int64_t elements) {
  if (!builder.plan.kernels.dropout) return;
  const int mask = builder.tensor8("dropout_mask", ActivationClass::dropout_mask, elements);
  Op& op = builder.list.ops.back();
  op.outputs.push_back(mask);
  op.saved.push_back(mask);
  op.forward_traffic += Bytes(elements);
  op.backward_traffic += Bytes(elements) + builder.bytes(2 * elements);
  op.backward_launches += 1;
}

int add_activation(OpListBuilder& builder, std::string_view name, const std::vector<int>& inputs, std::int64_t rows,
                   std::int64_t width, std::string_view output_name) {
  const auto read = static_cast<std::int64_t>(inputs.size());  // gate and up, or one hidden tensor
  const int output = builder.tensor(output_name, ActivationClass::down_input, rows * width);
  Op op;
  op.name = name;
  op.inputs = inputs;
  op.outputs = {output};
  op.saved = inputs;
  op.forward_traffic = builder.bytes((read + 1) * rows * width);
  op.backward_traffic = builder.bytes((2 * read + 1) * rows * width);
  op.backward_launches = 1;
  if (builder.plan.kernels.activation == ActivationKernel::unfused && read == 2) {
    const int activated = builder.tensor("activated_gate", ActivationClass::down_input, rows * width);
    op.outputs.push_back(activated);
    op.saved.push_back(activated);
    op.forward_traffic += builder.bytes(2 * rows * width);   // written, read again
    op.backward_traffic += builder.bytes(3 * rows * width);  // read, and its gradient written and read
    op.launches = op.backward_launches = 2;
  }
  builder.add(op);
  return output;
}

}  // namespace reckon
