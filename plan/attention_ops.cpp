// Attention: the fused QKV product or MLA's low-rank products, rotary embedding in place, the all-to-alls of Ulysses
// (arXiv 2309.14509), attention with the key/value exchange of a ring (arXiv 2310.01889), the output projection.
#include <algorithm>
#include <cmath>

#include "plan/attention_scratch.h"
#include "plan/op_list_builder.h"
#include "plan/ring_transfers.h"

namespace reckon {

namespace {

struct Parts {
  int query = 0, key = 0, value = 0;
};

/// q, k, v as parts of one buffer [tokens, (heads + 2 kv_heads) d].
Parts views_of(OpListBuilder& builder, int whole, std::int64_t tokens, std::int64_t heads, std::int64_t kv_heads) {
  const LocalShape& s = builder.shape;
  return {builder.view("query", ActivationClass::query, tokens * heads * s.head_dim, whole),
          builder.view("key", ActivationClass::key, tokens * kv_heads * s.head_dim, whole),
          builder.view("value", ActivationClass::value, tokens * kv_heads * s.value_dim, whole)};
}

/// Norm of each head of q and k (Qwen3) or of their whole width (OLMo 2). q and k get new storage, v stays a view.
Parts add_qk_norm(OpListBuilder& builder, Parts raw) {
  const ModelSpec& model = builder.model();
  const LocalShape& s = builder.shape;
  const std::int64_t query_elements = builder.elements(raw.query), key_elements = builder.elements(raw.key);
  const bool whole_width = model.qk_norm_full;
  builder.list.tensors[static_cast<std::size_t>(raw.query)].kept_as = ActivationClass::norm_input;
  builder.list.tensors[static_cast<std::size_t>(raw.key)].kept_as = ActivationClass::norm_input;
  const int normed = builder.tensor("qk_normed", ActivationClass::transient, query_elements + key_elements);
  const int query = builder.view("query_normed", ActivationClass::query, query_elements, normed);
  const int key = builder.view("key_normed", ActivationClass::key, key_elements, normed);
  const std::int64_t rows = whole_width ? 2 * s.tokens : s.tokens * (s.heads + s.kv_heads);
  const int statistics = builder.tensor32("norm_statistics", ActivationClass::norm_statistics, rows);
  Op op;
  op.name = "qk_norm";
  op.inputs = {raw.query, raw.key};
  op.outputs = {normed, query, key, statistics};
  op.saved = {raw.query, raw.key, statistics};
  op.forward_traffic = builder.bytes(2 * (query_elements + key_elements));
  op.backward_traffic = builder.bytes(3 * (query_elements + key_elements));
  op.weights = whole_width ? (s.heads + s.kv_heads) * s.head_dim : 2 * s.head_dim;
  op.launches = 2;
  op.backward_launches = 4;
  if (whole_width && s.tensor > 1) {
    const CollectiveCall sums{Collective::all_reduce, Group::tensor, Bytes(4 * rows)};
    op.forward_collectives = {sums};
    op.backward_collectives = {sums};
  }
  builder.add(op);
  return {query, key, raw.value};
}

Op rope(const OpListBuilder& builder, std::int64_t elements) {
  Op op;
  op.name = "rope";
  const auto rotated =
      static_cast<std::int64_t>(std::llround(static_cast<double>(elements) * builder.model().rope_fraction));
  op.forward_traffic = op.backward_traffic = builder.bytes(2 * rotated);
  op.launches = 2;
  op.backward_launches = 2;
  return op;
}

/// Rotates q and k in place.
Parts add_rope(OpListBuilder& builder, Parts parts) {
  const std::int64_t query_elements = builder.elements(parts.query), key_elements = builder.elements(parts.key);
  const auto whole = [&](int part) { return builder.list.tensors[static_cast<std::size_t>(part)].storage_of; };
  Op op = rope(builder, query_elements + key_elements);
  op.inputs = {parts.query, parts.key};
  builder.list.tensors[static_cast<std::size_t>(parts.query)].kept_as = ActivationClass::transient;
  builder.list.tensors[static_cast<std::size_t>(parts.key)].kept_as = ActivationClass::transient;
  const int query = builder.view("query_rotated", ActivationClass::query, query_elements, whole(parts.query));
  const int key = builder.view("key_rotated", ActivationClass::key, key_elements, whole(parts.key));
  op.outputs = {query, key};
  op.gradient_in_place = true;
  builder.add(op);
  return {query, key, parts.value};
}

/// One exchange for each row of the micro-batch, so that what arrives lies in the row's order.
CollectiveCall row_by_row(const OpListBuilder& builder, Bytes sent) {
  const std::int64_t rows = builder.plan.batch.micro_batch;
  return {Collective::all_to_all, Group::ulysses, Bytes(sent.value / rows), static_cast<int>(rows)};
}

/// All-to-all from [T, heads] to [uT, heads/u]. KV heads are replicated where the group has more ranks than KV heads:
/// then backward adds the gradients of several ranks, and what rounding them has cut off travels with them, so that the
/// sum is rounded once.
Parts add_scatter_heads(OpListBuilder& builder, Parts parts) {
  const LocalShape& s = builder.shape;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, s.kv_heads / s.ulysses);
  const std::int64_t tokens = s.tokens * s.ulysses;
  const std::int64_t elements = tokens * (s.heads / s.ulysses * s.head_dim + kv_heads * (s.head_dim + s.value_dim));
  for (const int part : {parts.query, parts.key, parts.value})
    builder.list.tensors[static_cast<std::size_t>(part)].kept_as = ActivationClass::transient;
  const int whole = builder.tensor("qkv_scattered", ActivationClass::transient, elements);
  const bool adds_rounded = s.ulysses > s.kv_heads && s.element_bytes < 4;
  const std::int64_t rest = adds_rounded ? tokens * kv_heads * (s.head_dim + s.value_dim) : 0;
  builder.list.tensors[static_cast<std::size_t>(whole)].gradient_rest = rest;
  const Parts scattered = views_of(builder, whole, tokens, s.heads / s.ulysses, kv_heads);
  Op op;
  op.name = "scatter_heads";
  op.kind = OpKind::communication;
  op.inputs = {parts.query, parts.key, parts.value};
  op.outputs = {whole, scattered.query, scattered.key, scattered.value};
  const Bytes sent = builder.bytes(elements), returned = builder.bytes(elements + rest);
  op.forward_traffic = 4 * sent;  // packed before, unpacked after
  op.backward_traffic = 4 * returned;
  op.forward_workspace = sent;
  op.backward_workspace = returned;
  op.forward_collectives = {row_by_row(builder, sent)};
  op.backward_collectives = {row_by_row(builder, returned)};
  op.launches = op.backward_launches = 2;
  builder.add(op);
  return scattered;
}

int add_gather_heads(OpListBuilder& builder, int output) {
  const std::int64_t elements = builder.elements(output);
  const int gathered = builder.tensor("projection_input", ActivationClass::projection_input, elements);
  Op op;
  op.name = "gather_heads";
  op.kind = OpKind::communication;
  op.inputs = {output};
  op.outputs = {gathered};
  const Bytes sent = builder.bytes(elements);
  op.forward_traffic = op.backward_traffic = 4 * sent;
  op.forward_workspace = op.backward_workspace = sent;
  op.forward_collectives = op.backward_collectives = {row_by_row(builder, sent)};
  op.launches = op.backward_launches = 2;
  builder.add(op);
  return gathered;
}

/// Tokens of one row on this rank while it attends: rows follow each other.
std::int64_t row_queries(const OpListBuilder& builder, const Op& op) {
  return op.attention.queries / builder.plan.batch.micro_batch;
}

/// Sums in FP32 need a place of their own where the tensors themselves are narrower.
bool sums_apart(const OpListBuilder& builder) {
  return builder.shape.element_bytes < 4 || !builder.plan.hardware.device.is_cpu;
}

/// The exchange of keys and values (ring_transfers.h), priced as that of the busiest rank. Backward passes them again
/// and sends their gradients to the owners, in FP32. Buffers are of fixed size, for one row.
void add_ring_exchange(const OpListBuilder& builder, Op& op, const AttentionWork& work) {
  if (builder.shape.ring == 1) return;
  const AttentionShape& a = op.attention;
  const std::int64_t tokens = row_queries(builder, op);
  const std::int64_t block = tokens * a.kv_heads * (a.head_dim + a.value_dim), blocks = ring_buffer_tokens(1);
  op.forward_workspace += blocks * builder.bytes(block);
  op.backward_workspace += blocks * (builder.bytes(block) + Bytes(4 * block));
  if (sums_apart(builder)) op.forward_workspace += Bytes(4 * tokens * a.heads * a.value_dim);
  if (work.key_blocks <= 0) return;
  const auto rows = static_cast<double>(builder.plan.batch.micro_batch);
  const auto exchange = [&](double moved_blocks, double messages, std::int64_t bytes, bool fp32) {
    const int calls = std::max(1, static_cast<int>(std::lround(rows * messages)));
    const double sent = rows * moved_blocks * static_cast<double>(bytes);
    return CollectiveCall{Collective::send_receive, Group::ring, Bytes(std::llround(sent / calls)), calls, fp32};
  };
  const CollectiveCall keys = exchange(work.key_blocks, work.messages, builder.bytes(block).value, false);
  op.forward_collectives.push_back(keys);
  op.backward_collectives.push_back(keys);
  op.backward_collectives.push_back(exchange(work.gradient_blocks, work.gradient_messages, 4 * block, true));
  op.launches *= 1 + keys.calls;
  op.backward_launches *= 1 + keys.calls;
}

/// Temporaries of flash attention. GPU (FlashAttention-2, csrc/flash_attn/flash_api.cpp), in backward: fp32 accumulator
/// of the query gradient, fp32 row sums, and with grouped queries key and value gradients for every query head. CPU:
/// the scratch of one block, in backward the row sums of one row, and fp32 gradients of it where they are narrower.
void add_flash_workspace(const OpListBuilder& builder, Op& op) {
  const AttentionShape& a = op.attention;
  if (builder.plan.hardware.device.is_cpu) {
    const bool widens = builder.shape.element_bytes < 4;
    const std::int64_t tokens = row_queries(builder, op);
    const Bytes scratch(4 * attention_scratch_elements(a.head_dim, widens));
    op.forward_workspace += scratch;
    op.backward_workspace += scratch + Bytes(4 * tokens * a.heads);
    if (widens)
      op.backward_workspace += Bytes(4 * tokens * (a.heads * a.head_dim + a.kv_heads * (a.head_dim + a.value_dim)));
    return;
  }
  op.backward_workspace += Bytes(4 * a.queries * a.heads * a.head_dim + 4 * a.queries * a.heads);
  if (a.kv_heads < a.heads) op.backward_workspace += builder.bytes(a.queries * a.heads * (a.head_dim + a.value_dim));
}

}  // namespace

int add_attention_core(OpListBuilder& builder, int query, int key, int value, const AttentionWork& work) {
  const LocalShape& s = builder.shape;
  Parts parts{query, key, value};
  if (s.ulysses > 1) parts = add_scatter_heads(builder, parts);
  const bool flash = builder.plan.kernels.attention == AttentionKernel::flash;
  const double micro_batch = static_cast<double>(builder.plan.batch.micro_batch);

  Op op;
  op.name = "attention";
  op.kind = OpKind::attention;
  AttentionShape& a = op.attention;
  a.pairs = micro_batch * work.pairs_per_row / static_cast<double>(s.ring) * work.imbalance;
  a.queries = s.tokens * s.ulysses;
  a.keys = a.queries + std::llround(static_cast<double>(a.queries) * work.key_blocks);
  a.heads = s.heads / s.ulysses;
  a.kv_heads = std::max<std::int64_t>(1, s.kv_heads / s.ulysses);
  a.head_dim = s.head_dim;
  a.value_dim = s.value_dim;
  const int output =
      builder.tensor("attention_output", ActivationClass::attention_output, a.queries * a.heads * a.value_dim);
  op.inputs = {parts.query, parts.key, parts.value};
  op.outputs = {output};
  if (flash) {
    const int log_sum_exp = builder.tensor32("log_sum_exp", ActivationClass::log_sum_exp, a.queries * a.heads);
    op.outputs.push_back(log_sum_exp);
    op.saved = {parts.query, parts.key, parts.value, output, log_sum_exp};
    add_flash_workspace(builder, op);
  } else {  // softmax probabilities of whole rows, mask or not
    const std::int64_t row = builder.plan.batch.sequence_length / s.ring;
    const int scores = builder.tensor("attention_scores", ActivationClass::attention_scores,
                                      a.queries * builder.plan.batch.sequence_length * a.heads);
    op.outputs.push_back(scores);
    op.saved = {parts.query, parts.key, parts.value, scores};
    if (builder.plan.kernels.dropout) {  // PV multiplies the dropped-out copy
      const int dropped = builder.tensor("dropped_scores", ActivationClass::attention_scores, builder.elements(scores));
      const int mask = builder.tensor8("scores_mask", ActivationClass::attention_scores, builder.elements(scores));
      op.outputs.insert(op.outputs.end(), {dropped, mask});
      op.saved.insert(op.saved.end(), {dropped, mask});
    }
    op.backward_workspace = builder.bytes(a.queries * builder.plan.batch.sequence_length * a.heads);
    op.launches = row > 0 ? 4 : 0;
    op.backward_launches = 6;
  }
  const std::int64_t moved = a.queries * (a.heads + a.kv_heads) * (a.head_dim + a.value_dim);
  op.forward_traffic = builder.bytes(moved);
  op.backward_traffic = builder.bytes(2 * moved);
  op.weights = builder.model().attention_sinks ? s.heads : 0;
  add_ring_exchange(builder, op, work);
  if (s.ulysses > 1) {
    builder.add(op);
    return add_gather_heads(builder, output);
  }
  const int projection_input =
      builder.view("projection_input", ActivationClass::projection_input, builder.elements(output), output);
  op.outputs.push_back(projection_input);
  builder.add(op);
  return projection_input;
}

int add_attention(OpListBuilder& builder, int input, const AttentionWork& work) {
  const ModelSpec& model = builder.model();
  const LocalShape& s = builder.shape;
  const std::int64_t width = (s.heads + 2 * s.kv_heads) * s.head_dim;
  const int whole = builder.tensor("qkv", ActivationClass::transient, s.tokens * width);
  Parts parts = views_of(builder, whole, s.tokens, s.heads, s.kv_heads);
  add_column_product(builder, "qkv", input, s.hidden, width, model.qkv_bias,
                     {whole, parts.query, parts.key, parts.value});
  if (model.qk_norm || model.qk_norm_full) parts = add_qk_norm(builder, parts);
  if (model.position == Position::rope) parts = add_rope(builder, parts);
  const int projection_input = add_attention_core(builder, parts.query, parts.key, parts.value, work);
  const int branch = builder.tensor("projection_output", ActivationClass::transient, s.rows * s.hidden);
  add_row_product(builder, "projection", projection_input, s.heads * s.value_dim, s.hidden, model.projection_bias,
                  branch);
  return branch;
}

namespace {

/// Norms of the two low-rank parts; the rotary key passes by.
int add_latent_norm(OpListBuilder& builder, int latent, std::int64_t width) {
  const LocalShape& s = builder.shape;
  const int normed = builder.tensor("latent_normed", ActivationClass::latent, s.rows * width);
  const std::int64_t parts = builder.model().mla.q_lora_rank > 0 ? 2 : 1;
  const int statistics = builder.tensor32("norm_statistics", ActivationClass::norm_statistics, parts * s.rows);
  Op op;
  op.name = "latent_norm";
  op.inputs = {latent};
  op.outputs = {normed, statistics};
  op.saved = {latent, statistics};
  op.forward_traffic = builder.bytes(2 * s.rows * width);
  op.backward_traffic = builder.bytes(3 * s.rows * width);
  op.weights = width;
  op.launches = static_cast<int>(parts);
  op.backward_launches = static_cast<int>(2 * parts);
  builder.add(op);
  return normed;
}

/// Rotates q in place and the shared rotary key, which is then copied behind every head's own key.
Parts add_latent_rope(OpListBuilder& builder, int query_raw, int latent, int key_value) {
  const LocalShape& s = builder.shape;
  const std::int64_t query_elements = builder.elements(query_raw);
  const int query = builder.view("query_rotated", ActivationClass::query, query_elements, query_raw);
  const int key = builder.tensor("key", ActivationClass::key, query_elements);
  const int value = builder.tensor("value", ActivationClass::value, s.tokens * s.heads * s.value_dim);
  Op op = rope(builder, 2 * query_elements + s.tokens * s.heads * s.value_dim);
  op.inputs = {query_raw, latent, key_value};
  op.outputs = {query, key, value};
  builder.add(op);
  return {query, key, value};
}

}  // namespace

int add_latent_attention(OpListBuilder& builder, int input, const AttentionWork& work) {
  const MlaSpec& mla = builder.model().mla;
  const LocalShape& s = builder.shape;
  const std::int64_t low_rank = mla.q_lora_rank + mla.kv_lora_rank;
  // The down product is replicated over the tensor group: every rank multiplies its own rows.
  const int latent = builder.tensor("latent", ActivationClass::latent, s.rows * (low_rank + mla.qk_rope_head_dim));
  Op down;
  down.name = "latent_down";
  down.kind = OpKind::gemm;
  down.gemm = {1, s.rows, low_rank + mla.qk_rope_head_dim, s.hidden};
  down.inputs = down.saved = {input};
  down.outputs = {latent};
  down.weights = down.gemm.n * down.gemm.k;
  down.backward_workspace = weight_gradient_workspace(builder, down.weights);
  builder.add(down);
  const int normed = add_latent_norm(builder, latent, low_rank);

  const std::int64_t query_width = s.heads * s.head_dim;
  const int query_raw = builder.tensor("query", ActivationClass::transient, s.tokens * query_width);
  const bool low_rank_query = mla.q_lora_rank > 0;
  add_column_product(builder, "query_up", low_rank_query ? normed : input, low_rank_query ? mla.q_lora_rank : s.hidden,
                     query_width, false, {query_raw});
  const std::int64_t key_value_width = s.heads * (mla.qk_nope_head_dim + mla.v_head_dim);
  const int key_value = builder.tensor("key_value", ActivationClass::transient, s.tokens * key_value_width);
  add_column_product(builder, "latent_up", normed, mla.kv_lora_rank, key_value_width, false, {key_value});
  const Parts parts = add_latent_rope(builder, query_raw, latent, key_value);
  const int projection_input = add_attention_core(builder, parts.query, parts.key, parts.value, work);
  const int branch = builder.tensor("projection_output", ActivationClass::transient, s.rows * s.hidden);
  add_row_product(builder, "projection", projection_input, s.heads * s.value_dim, s.hidden,
                  builder.model().projection_bias, branch);
  return branch;
}

}  // namespace reckon
