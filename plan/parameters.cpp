// One naming scheme for every family, Hugging Face's for LLaMA and DeepSeek: other families' fused or differently named
// tensors (gpt2's c_attn, phi3's gate_up_proj, mixtral's w1) have the same elements under these names.
#include "plan/parameters.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>

#include "plan/layer_example.h"

namespace reckon {

namespace {

/// Collects the weights of one module under a name prefix.
struct Module {
  std::vector<Parameter>& list;
  std::string prefix;
  std::int64_t expert = -1;

  void add(std::string_view name, std::vector<std::int64_t> shape, Split split) const {
    list.push_back({prefix + std::string(name), std::move(shape), split, expert});
  }
  void norm(const ModelSpec& model, std::string_view name, std::int64_t size) const {
    add(std::string(name) + ".weight", {size}, Split::replicated);
    if (model.norm_bias) add(std::string(name) + ".bias", {size}, Split::replicated);
  }
  /// A product with `outputs` and `inputs`; the bias of a row-parallel one is added once, after the reduction.
  void linear(std::string_view name, std::int64_t outputs, std::int64_t inputs, Split split, bool bias) const {
    product(name, outputs, inputs, split);
    if (bias) this->bias(name, outputs, split == Split::columns ? Split::replicated : split);
  }
  /// Weight and bias apart: products that read one input keep their weights side by side, and so their biases, so that
  /// a runtime can multiply them as one matrix.
  void product(std::string_view name, std::int64_t outputs, std::int64_t inputs, Split split) const {
    add(std::string(name) + ".weight", {outputs, inputs}, split);
  }
  void bias(std::string_view name, std::int64_t outputs, Split split) const {
    add(std::string(name) + ".bias", {outputs}, split);
  }
};

void add_latent_attention(const ModelSpec& model, const Module& attention) {
  const MlaSpec& mla = model.mla;
  const std::int64_t query_width = model.heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim);
  if (mla.q_lora_rank == 0) {
    attention.linear("q_proj", query_width, model.hidden, Split::rows, false);
  } else {
    attention.linear("q_a_proj", mla.q_lora_rank, model.hidden, Split::replicated, model.qkv_bias);
    attention.norm(model, "q_a_layernorm", mla.q_lora_rank);
    attention.linear("q_b_proj", query_width, mla.q_lora_rank, Split::rows, false);
  }
  attention.linear("kv_a_proj_with_mqa", mla.kv_lora_rank + mla.qk_rope_head_dim, model.hidden, Split::replicated,
                   model.qkv_bias);
  attention.norm(model, "kv_a_layernorm", mla.kv_lora_rank);
  attention.linear("kv_b_proj", model.heads * (mla.qk_nope_head_dim + mla.v_head_dim), mla.kv_lora_rank, Split::rows,
                   false);
  attention.linear("o_proj", model.hidden, model.heads * mla.v_head_dim, Split::columns, model.projection_bias);
}

void add_attention(const ModelSpec& model, const Module& attention) {
  if (model.is_mla()) return add_latent_attention(model, attention);
  const std::int64_t query_width = model.heads * model.head_dim, key_width = model.kv_heads * model.head_dim;
  attention.product("q_proj", query_width, model.hidden, Split::rows);
  attention.product("k_proj", key_width, model.hidden, Split::kv_rows);
  attention.product("v_proj", key_width, model.hidden, Split::kv_rows);
  if (model.qkv_bias) {
    attention.bias("q_proj", query_width, Split::rows);
    attention.bias("k_proj", key_width, Split::kv_rows);
    attention.bias("v_proj", key_width, Split::kv_rows);
  }
  attention.linear("o_proj", model.hidden, query_width, Split::columns, model.projection_bias);
  if (model.qk_norm) {
    attention.add("q_norm.weight", {model.head_dim}, Split::replicated);
    attention.add("k_norm.weight", {model.head_dim}, Split::replicated);
  }
  if (model.qk_norm_full) {
    attention.add("q_norm.weight", {query_width}, Split::rows);
    attention.add("k_norm.weight", {key_width}, Split::kv_rows);
  }
  if (model.attention_sinks) attention.add("sinks", {model.heads}, Split::rows);
}

void add_ffn(const ModelSpec& model, const Module& ffn, std::int64_t width, bool bias) {
  if (model.gated_ffn) ffn.product("gate_proj", width, model.hidden, Split::rows);
  ffn.product("up_proj", width, model.hidden, Split::rows);
  if (model.gated_ffn && bias) ffn.bias("gate_proj", width, Split::rows);
  if (bias) ffn.bias("up_proj", width, Split::rows);
  ffn.linear("down_proj", model.hidden, width, Split::columns, bias);
}

void add_moe(const ModelSpec& model, const Module& mlp, std::int64_t listed_experts) {
  const MoeSpec& moe = model.moe;
  mlp.linear("gate", moe.experts, model.hidden, Split::replicated, moe.router_bias);
  if (moe.score_correction_bias) mlp.add("gate.e_score_correction_bias", {moe.experts}, Split::replicated);
  for (std::int64_t expert = 0; expert < listed_experts; ++expert) {
    const Module module{mlp.list, mlp.prefix + "experts." + std::to_string(expert) + ".", expert};
    add_ffn(model, module, moe.expert_ffn_hidden, moe.expert_bias);
  }
  if (moe.shared_experts == 0) return;
  add_ffn(model, {mlp.list, mlp.prefix + "shared_experts."}, moe.shared_ffn_hidden, model.ffn_bias);
  if (moe.shared_expert_gate) mlp.linear("shared_expert_gate", 1, model.hidden, Split::replicated, false);
}

/// Sum of `elements_of` over all weights; layers of one kind are alike, so each kind is listed once.
std::int64_t sum_over_model(const ModelSpec& model, const std::function<std::int64_t(const Parameter&)>& elements_of) {
  const auto sum = [&](const std::vector<Parameter>& list) {
    return std::accumulate(list.begin(), list.end(), std::int64_t{0},
                           [&](std::int64_t total, const Parameter& p) { return total + elements_of(p); });
  };
  std::int64_t layers_of_kind[2] = {0, 0}, example[2] = {0, 0};
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const int kind = model.layer_is_moe(layer) ? 1 : 0;
    ++layers_of_kind[kind];
    example[kind] = layer;
  }
  std::int64_t total = sum(embedding_parameters(model)) + sum(head_parameters(model));
  for (const int kind : {0, 1})
    if (layers_of_kind[kind] > 0) total += layers_of_kind[kind] * sum(layer_parameters(model, example[kind]));
  return total;
}

}  // namespace

std::int64_t Parameter::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<Parameter> embedding_parameters(const ModelSpec& model) {
  std::vector<Parameter> list;
  const Module root{list, "model."};
  root.add("embed_tokens.weight", {model.vocabulary, model.hidden}, Split::rows);
  if (model.position == Position::learned)
    root.add("embed_positions.weight", {model.position_rows, model.hidden}, Split::replicated);
  if (model.embedding_norm) root.norm(model, "embed_layernorm", model.hidden);
  return list;
}

namespace {

std::vector<Parameter> list_layer(const ModelSpec& model, std::int64_t layer, std::int64_t listed_experts) {
  std::vector<Parameter> list;
  const Module root{list, "model.layers." + std::to_string(layer) + "."};
  if (model.pre_norm) root.norm(model, "input_layernorm", model.hidden);
  add_attention(model, {list, root.prefix + "self_attn."});
  if (model.post_norm) root.norm(model, "post_attention_layernorm", model.hidden);
  // LLaMA calls the norm before the FFN "post_attention_layernorm"; where both exist it has its own name.
  if (model.pre_norm && model.block_norms > 1)
    root.norm(model, model.post_norm ? "pre_feedforward_layernorm" : "post_attention_layernorm", model.hidden);
  const Module mlp{list, root.prefix + "mlp."};
  if (model.layer_is_moe(layer)) add_moe(model, mlp, listed_experts);
  else add_ffn(model, mlp, model.ffn_hidden, model.ffn_bias);
  if (model.post_norm) root.norm(model, "post_feedforward_layernorm", model.hidden);
  return list;
}

}  // namespace

std::vector<Parameter> layer_parameters(const ModelSpec& model, std::int64_t layer) {
  return list_layer(model, layer, model.moe.experts);
}

std::vector<Parameter> layer_with_one_expert(const ModelSpec& model, std::int64_t layer) {
  return list_layer(model, layer, std::min<std::int64_t>(1, model.moe.experts));
}

std::vector<Parameter> head_parameters(const ModelSpec& model) {
  std::vector<Parameter> list;
  Module{list, "model."}.norm(model, "norm", model.hidden);
  const Module root{list, ""};
  if (!model.tied_head) root.add("lm_head.weight", {model.vocabulary, model.hidden}, Split::rows);
  if (model.head_bias) root.add("lm_head.bias", {model.vocabulary}, Split::rows);
  return list;
}

std::int64_t count_parameters(const ModelSpec& model) {
  return sum_over_model(model, [](const Parameter& p) { return p.elements(); });
}

std::int64_t count_active_parameters(const ModelSpec& model) {
  if (!model.is_moe()) return count_parameters(model);
  const std::int64_t routed =
      sum_over_model(model, [](const Parameter& p) { return p.is_routed_expert() ? p.elements() : 0; });
  const std::int64_t choosing = sum_over_model(
      model, [](const Parameter& p) { return p.name.ends_with("e_score_correction_bias") ? p.elements() : 0; });
  const std::int64_t uncounted = model.moe.active_without_embedding ? model.vocabulary * model.hidden : 0;
  return count_parameters(model) - routed + routed / model.moe.experts * model.moe.experts_per_token - choosing -
         uncounted;
}

}  // namespace reckon
