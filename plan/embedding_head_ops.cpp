// The two ends of the model, with the vocabulary split over the tensor group (Megatron-LM, arXiv 1909.08053, section
// 3).
#include <algorithm>

#include "plan/op_list_builder.h"

namespace reckon {

namespace {

/// Rows whose logits the chunked loss holds at once; it makes them again in backward.
constexpr std::int64_t kLossChunkRows = 1024;

/// Bytes that move per 16-bit logit, both passes together, from measured kernels at full bandwidth (Liger-Kernel's
/// fused cross-entropy 24, Megatron's with an fp32 copy 57); a third of it in forward.
constexpr std::int64_t kFusedLossBytes = 24;
constexpr std::int64_t kFp32LossBytes = 57;

/// Maximum, then sum of exponentials and the target's logit of each row, over the vocabulary shards.
std::vector<CollectiveCall> loss_collectives(const LocalShape& s) {
  if (s.tensor == 1) return {};
  return {{Collective::all_reduce, Group::tensor, Bytes(4 * s.tokens)},
          {Collective::all_reduce, Group::tensor, Bytes(8 * s.tokens)}};
}

void add_loss(OpListBuilder& builder, int logits, int targets) {
  const LocalShape& s = builder.shape;
  const LossKernel kernel = builder.plan.kernels.loss;
  const std::int64_t cells = s.tokens * s.vocabulary;
  const int log_sum_exp = builder.tensor32("loss_log_sum_exp", ActivationClass::log_sum_exp, s.tokens);
  Op op;
  op.name = "loss";
  op.inputs = {logits, targets};
  op.outputs = {log_sum_exp};
  op.saved = {targets, log_sum_exp};
  op.forward_workspace = Bytes(8 * s.tokens);  // target logit and loss of each row
  op.forward_collectives = loss_collectives(s);
  const bool in_fp32 = kernel == LossKernel::fp32_logits || kernel == LossKernel::fp32_softmax;
  const std::int64_t per_cell = in_fp32 ? kFp32LossBytes : kFusedLossBytes;
  const Bytes both_passes(cells * per_cell * s.element_bytes / 2);
  op.forward_traffic = both_passes / 3;
  op.backward_traffic = both_passes - op.forward_traffic;
  if (in_fp32) {
    const bool softmax = kernel == LossKernel::fp32_softmax;
    if (softmax) op.forward_workspace += Bytes(4 * cells);  // the cast logits
    const int copy = builder.tensor32(softmax ? "softmax" : "logits_fp32", ActivationClass::logits, cells);
    op.outputs.push_back(copy);
    op.saved.push_back(copy);
  } else {
    op.saved.push_back(logits);
    op.gradient_over_input = true;
  }
  builder.add(op);
}

}  // namespace

OpList embedding_ops(const Plan& plan) {
  OpListBuilder builder(plan);
  const LocalShape& s = builder.shape;
  const ModelSpec& model = plan.model;
  const int tokens = builder.tensor32("tokens", ActivationClass::tokens, s.tokens);
  const int embedded = builder.tensor("embedded", ActivationClass::transient, s.rows * s.hidden);
  const bool learned = model.position == Position::learned;
  Op op;
  op.name = "embedding";
  op.inputs = op.saved = {tokens};
  op.outputs = {embedded};
  op.weights = s.vocabulary * s.hidden + (learned ? model.position_rows * s.hidden : 0);
  op.forward_traffic = builder.bytes((learned ? 3 : 2) * s.tokens * s.hidden);
  op.backward_traffic = builder.bytes(s.tokens * s.hidden) + Bytes(8 * s.tokens * s.hidden);  // scatter-add in fp32
  const Bytes whole = builder.bytes(s.tokens * s.hidden);
  if (s.sequence) {
    op.forward_collectives = {{Collective::reduce_scatter, Group::tensor, whole}};
    op.backward_collectives = {{Collective::all_gather, Group::tensor, whole}};
    op.forward_workspace = op.backward_workspace = whole;
  } else if (s.tensor > 1) {
    op.forward_collectives = {{Collective::all_reduce, Group::tensor, whole}};
  }
  op.launches = learned ? 2 : 1;
  op.backward_launches = 1;
  builder.add(op);
  if (model.embedding_norm) {
    builder.list.tensors[static_cast<std::size_t>(embedded)].kept_as = ActivationClass::norm_input;
    add_norm(builder, "embedding_norm", embedded, s.rows, s.hidden, (model.norm_bias ? 2 : 1) * s.hidden, "stream",
             ActivationClass::transient);
  }
  add_dropout(builder, s.rows * s.hidden);
  return builder.list;
}

OpList head_ops(const Plan& plan) {
  OpListBuilder builder(plan);
  const LocalShape& s = builder.shape;
  const ModelSpec& model = plan.model;
  const int stream = builder.tensor("stream", ActivationClass::norm_input, s.rows * s.hidden);
  const int targets = builder.tensor32("targets", ActivationClass::tokens, s.tokens);
  const int head_input = add_norm(builder, "final_norm", stream, s.rows, s.hidden, (model.norm_bias ? 2 : 1) * s.hidden,
                                  "head_input", ActivationClass::head_input);
  const bool chunked = plan.kernels.loss == LossKernel::chunked;
  const std::int64_t rows = chunked ? std::min(s.tokens, kLossChunkRows) : s.tokens;
  const int logits = builder.tensor("logits", ActivationClass::logits, rows * s.vocabulary);
  add_column_product(builder, "head", head_input, s.hidden, s.vocabulary, model.head_bias, {logits});
  add_loss(builder, logits, targets);
  return builder.list;
}

}  // namespace reckon
