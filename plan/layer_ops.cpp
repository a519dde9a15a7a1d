#include "plan/layer_ops.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "plan/op_list_builder.h"

namespace reckon {

namespace {

std::int64_t norm_weights(const ModelSpec& model) {
  return (model.norm_bias ? 2 : 1) * model.hidden;
}

int add_input_norm(OpListBuilder& builder, std::string_view name, int stream, std::string_view output_name,
                   ActivationClass output_class) {
  const LocalShape& s = builder.shape;
  return add_norm(builder, name, stream, s.rows, s.hidden, norm_weights(builder.model()), output_name, output_class);
}

/// The branch as it is added to the stream: normed first where the family does that (Gemma 2, OLMo 2).
int add_post_norm(OpListBuilder& builder, std::string_view name, int branch, std::string_view output_name) {
  if (!builder.model().post_norm) return branch;
  builder.list.tensors[static_cast<std::size_t>(branch)].kept_as = ActivationClass::norm_input;
  return add_input_norm(builder, name, branch, output_name, ActivationClass::transient);
}

OpList layer_section(const Plan& plan, bool moe, const AttentionWork& work) {
  OpListBuilder builder(plan);
  const ModelSpec& model = plan.model;
  const LocalShape& s = builder.shape;
  const bool pre_norm = model.pre_norm;
  const int stream =
      builder.tensor("stream", pre_norm ? ActivationClass::norm_input : ActivationClass::qkv_input, s.rows * s.hidden);
  const int qkv_input =
      pre_norm ? add_input_norm(builder, "attention_norm", stream, "qkv_input", ActivationClass::qkv_input) : stream;
  int branch =
      model.is_mla() ? add_latent_attention(builder, qkv_input, work) : add_attention(builder, qkv_input, work);
  branch = add_post_norm(builder, "attention_post_norm", branch, "attention_branch");
  const ActivationClass sum_class = model.parallel_block ? ActivationClass::transient
                                    : pre_norm           ? ActivationClass::norm_input
                                                         : ActivationClass::ffn_input;
  const int residual = add_residual(builder, "attention_residual", stream, branch, "residual", sum_class);
  add_dropout(builder, s.rows * s.hidden);
  const int ffn_stream = model.parallel_block ? stream : residual;
  int ffn_input = ffn_stream;
  if (model.parallel_block && model.block_norms == 1) ffn_input = qkv_input;
  else if (pre_norm)
    ffn_input = add_input_norm(builder, "ffn_norm", ffn_stream, "ffn_input", ActivationClass::ffn_input);
  branch = moe ? add_moe_ffn(builder, ffn_input) : add_dense_ffn(builder, ffn_input);
  branch = add_post_norm(builder, "ffn_post_norm", branch, "ffn_branch");
  add_residual(builder, "ffn_residual", residual, branch, "output", ActivationClass::transient);
  add_dropout(builder, s.rows * s.hidden);
  return std::move(builder.list);
}

/// Visible pairs of one causal row of `length` tokens, each seeing at most `window` (0: all before it).
double visible_pairs(std::int64_t length, std::int64_t window) {
  const auto n = static_cast<double>(length);
  if (window <= 0 || window >= length) return n * (n + 1) / 2;
  const auto w = static_cast<double>(window);
  return w * (w + 1) / 2 + (n - w) * w;
}

/// Of the layers, those with the window: the first of every `sliding_window_every`.
double windowed_share(const ModelSpec& model) {
  if (model.sliding_window == 0) return 0;
  const std::int64_t every = std::max<std::int64_t>(1, model.sliding_window_every);
  const std::int64_t windowed = (model.layers + every - 1) / every;
  return static_cast<double>(windowed) / static_cast<double>(model.layers);
}

/// What the busiest ring rank computes and receives of a row that is one document.
struct WorstRank {
  double pairs = 0, key_blocks = 0;  // visible pairs; keys that it does not hold, in units of its own tokens
};

/// A rank holds a run of tokens, or two mirrored ones (zigzag); a run needs the `window` - 1 tokens before it. Other
/// placements spread the tokens of a row evenly and need all of it.
WorstRank worst_rank(const Plan& plan, std::int64_t window) {
  const std::int64_t length = plan.batch.sequence_length, ring = plan.parallel.ring, own = length / ring;
  const Placement placement = planned_placement(plan);
  const bool halves = placement == Placement::zigzag || placement == Placement::zigzag_per_document;
  if (placement != Placement::contiguous && (!halves || length % (2 * ring) != 0))
    return {visible_pairs(length, window) / static_cast<double>(ring), static_cast<double>(ring - 1)};
  const std::int64_t run = halves ? own / 2 : own, before = window == 0 ? length : window - 1;
  const auto pairs = [&](std::int64_t first) {
    return visible_pairs(first + run, window) - visible_pairs(first, window);
  };
  WorstRank worst;
  for (std::int64_t rank = 0; rank < ring; ++rank) {
    const std::int64_t first = rank * run, mirrored = length - (rank + 1) * run;
    const std::int64_t received = std::min(first, before) + (halves ? std::min(mirrored - first - run, before) : 0);
    worst.pairs = std::max(worst.pairs, pairs(first) + (halves ? pairs(mirrored) : 0));
    worst.key_blocks = std::max(worst.key_blocks, static_cast<double>(received) / static_cast<double>(own));
  }
  return worst;
}

}  // namespace

NumberFormat tensor_format(const Plan& plan) {
  return payload_bits(plan.precision.compute) < 16 ? NumberFormat::bf16 : plan.precision.compute;
}

OpList section_ops(const Plan& plan, Section section, const AttentionWork& work) {
  switch (section) {
    case Section::embedding: return embedding_ops(plan);
    case Section::dense_layer: return layer_section(plan, false, work);
    case Section::moe_layer: return layer_section(plan, true, work);
    case Section::head: return head_ops(plan);
  }
  throw std::logic_error("unknown section");
}

double causal_pairs(const ModelSpec& model, std::int64_t tokens) {
  const double share = windowed_share(model);
  return share * visible_pairs(tokens, model.sliding_window) + (1 - share) * visible_pairs(tokens, 0);
}

Placement planned_placement(const Plan& plan) {
  const Placement placement = plan.documents.placement;
  if (placement != Placement::automatic) return placement;
  if (plan.parallel.ring == 1) return Placement::contiguous;
  if (plan.documents.source != "single") return Placement::automatic;
  return plan.batch.sequence_length % (2 * plan.context()) == 0 ? Placement::zigzag : Placement::striped;
}

AttentionWork single_document_work(const Plan& plan) {
  const std::int64_t length = plan.batch.sequence_length;
  AttentionWork work;
  work.pairs_per_row = causal_pairs(plan.model, length);
  if (plan.parallel.ring == 1) return work;
  const double share = windowed_share(plan.model);
  const WorstRank windowed = worst_rank(plan, plan.model.sliding_window), full = worst_rank(plan, 0);
  work.key_blocks = work.gradient_blocks = share * windowed.key_blocks + (1 - share) * full.key_blocks;
  work.messages = work.gradient_messages = std::ceil(work.key_blocks);
  work.imbalance = (share * windowed.pairs + (1 - share) * full.pairs) /
                   (work.pairs_per_row / static_cast<double>(plan.parallel.ring));
  return work;
}

std::string attention_key(const AttentionShape& shape) {
  return fmt::format("attention queries {} heads {}/{} dim {}/{}", shape.queries, shape.heads, shape.kv_heads,
                     shape.head_dim, shape.value_dim);
}

std::optional<double> pairs_of_key(std::string_view key) {
  constexpr std::string_view kWord = " pairs ";
  const std::size_t place = key.find(kWord);
  if (!key.starts_with("attention ") || place == std::string_view::npos) return std::nullopt;
  double pairs = 0;
  const char* const first = key.data() + place + kWord.size();
  const auto [end, error] = std::from_chars(first, key.data() + key.size(), pairs);
  return error == std::errc() && end != first ? std::optional(pairs) : std::nullopt;
}

std::string shape_key(const Op& op) {
  switch (op.kind) {
    case OpKind::gemm:
      return op.gemm.batch == 1 ? fmt::format("gemm {}x{}x{}", op.gemm.m, op.gemm.n, op.gemm.k)
                                : fmt::format("gemm {}x{}x{}x{}", op.gemm.batch, op.gemm.m, op.gemm.n, op.gemm.k);
    case OpKind::attention:
      return fmt::format("{} keys {} pairs {:.0f}", attention_key(op.attention), op.attention.keys, op.attention.pairs);
    case OpKind::memory_bound:
    case OpKind::communication:
      return fmt::format("{} {}B/{}B", op.name, op.forward_traffic.value, op.backward_traffic.value);
  }
  throw std::logic_error("unknown kind of op");
}

}  // namespace reckon
