// Helpers that the section files share: local shapes of one rank, and the op patterns that recur (norm, column- and
// row-parallel products, elementwise passes). Bytes of memory-bound ops follow the table in docs/time.md.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/layer_ops.h"

namespace reckon {

/// What one rank holds of the model and of a micro-batch. Letters as in layer_ops.h.
struct LocalShape {
  std::int64_t tokens = 0;    // T, of the whole tensor group
  std::int64_t rows = 0;      // tokens of the residual stream on this rank: T/t with sequence parallelism, else T
  std::int64_t hidden = 0;    // h
  std::int64_t heads = 0;     // a/t
  std::int64_t kv_heads = 0;  // g/t, at least 1 (replicated when there are fewer KV heads than ranks)
  std::int64_t head_dim = 0, value_dim = 0;
  std::int64_t ffn = 0;         // f/t
  std::int64_t vocabulary = 0;  // V/t, rounded up
  std::int64_t tensor = 1, ulysses = 1, ring = 1, expert = 1;
  bool sequence = false;
  std::int64_t element_bytes = 2;  // of the compute format
};

LocalShape local_shape(const Plan& plan);

struct OpListBuilder {
  const Plan& plan;
  LocalShape shape;
  OpList list;

  explicit OpListBuilder(const Plan& checked_plan) : plan(checked_plan), shape(local_shape(checked_plan)) {}

  const ModelSpec& model() const { return plan.model; }
  /// Bytes of `elements` values in compute format.
  Bytes bytes(std::int64_t elements) const { return Bytes(elements * shape.element_bytes); }

  /// A tensor in compute format.
  int tensor(std::string_view name, ActivationClass kept_as, std::int64_t elements);
  /// A part of `whole`, or all of it under another name.
  int view(std::string_view name, ActivationClass kept_as, std::int64_t elements, int whole);
  /// A tensor of 4-byte elements: statistics, indices, token ids.
  int tensor32(std::string_view name, ActivationClass kept_as, std::int64_t elements);
  /// A tensor of 1-byte elements: dropout masks.
  int tensor8(std::string_view name, ActivationClass kept_as, std::int64_t elements);

  Op& add(Op op);
  std::int64_t elements(int tensor_index) const;
};

/// Norm over `width` of each of `rows` rows: keeps its input and one statistic a row (two for LayerNorm). `weights`
/// counts scale and bias.
int add_norm(OpListBuilder& builder, std::string_view name, int input, std::int64_t rows, std::int64_t width,
             std::int64_t weights, std::string_view output_name, ActivationClass output_class);

/// Product whose weight is split by outputs: [T, inputs] x [inputs, outputs]. With sequence parallelism its input is
/// gathered from the tensor group (again in backward) and its input gradient reduce-scattered; without, the input
/// gradient is all-reduced. `outputs` counts this rank's columns.
Op& add_column_product(OpListBuilder& builder, std::string_view name, int input, std::int64_t inputs,
                       std::int64_t outputs, bool bias, std::vector<int> output_tensors);

/// Product whose weight is split by inputs: [T, inputs] x [inputs, outputs]. Its partial results are reduce-scattered
/// with sequence parallelism (their gradient gathered), all-reduced without.
Op& add_row_product(OpListBuilder& builder, std::string_view name, int input, std::int64_t inputs, std::int64_t outputs,
                    bool bias, int output);

/// `sum = stream + branch`, in place into the branch; both gradients are the sum's.
int add_residual(OpListBuilder& builder, std::string_view name, int stream, int branch, std::string_view sum_name,
                 ActivationClass sum_class);

/// Dropout of `elements` values fused into the last op, where the plan has it: a mask to keep, and a pass in backward.
void add_dropout(OpListBuilder& builder, std::int64_t elements);

/// Activation of `rows` x `width`: of gate and up, or of one hidden tensor.
int add_activation(OpListBuilder& builder, std::string_view name, const std::vector<int>& inputs, std::int64_t rows,
                   std::int64_t width, std::string_view output_name);

/// Bytes of the temporary that holds a weight gradient in compute format before it is added to the stored gradient.
/// None when the product accumulates straight into it: same format, or a GPU kernel that widens (Megatron's gradient
/// accumulation fusion).
Bytes weight_gradient_workspace(const OpListBuilder& builder, std::int64_t weights);

/// bf16 products on a CPU whose bf16 rate is not above its fp32 rate go through fp32 copies, as the runtime does.
bool multiplies_in_fp32(const Plan& plan);

/// Attention from the normed input [rows, h] to the projection's output [rows, h], which it returns.
int add_attention(OpListBuilder& builder, int input, const AttentionWork& work);
/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), same ends.
int add_latent_attention(OpListBuilder& builder, int input, const AttentionWork& work);
/// Attention proper with its all-to-alls and ring exchange, from q, k, v to the projection's input.
int add_attention_core(OpListBuilder& builder, int query, int key, int value, const AttentionWork& work);
/// FFN from the normed input [rows, h] to the branch output [rows, h].
int add_dense_ffn(OpListBuilder& builder, int input);
/// Router, dispatch, experts, shared experts, combine; same ends.
int add_moe_ffn(OpListBuilder& builder, int input);

OpList embedding_ops(const Plan& plan);
OpList head_ops(const Plan& plan);

}  // namespace reckon
