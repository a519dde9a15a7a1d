// LLaMA and its relatives share most field names; each reader adds what is its own.
#include <algorithm>
#include <string>
#include <vector>

#include "plan/hugging_face_families.h"

namespace reckon {

namespace {

using Fields = HuggingFaceFields;

/// layer_types lists every layer; the spec knows "every n-th layer has the window", counted from the first.
std::int64_t window_period(Fields& fields, const std::vector<std::string>& kinds) {
  const auto windowed = [&](std::size_t i) { return kinds[i] == "sliding_attention"; };
  for (std::size_t period = 1; period <= kinds.size(); ++period) {
    bool same = true;
    for (std::size_t i = 0; i < kinds.size(); ++i) same = same && windowed(i) == (i % period == 0);
    if (same) return static_cast<std::int64_t>(period);
  }
  fields.error("layer_types",
               "layer_types: this order of sliding and full attention cannot be expressed; known are: no window, every "
               "layer, or every n-th layer counted from the first");
  return 1;
}

/// `every` is the period of the families that do not list layer_types.
void read_window(Fields& fields, ModelSpec& model, std::int64_t every) {
  const std::int64_t window = fields.get("sliding_window", std::int64_t{0});
  const bool on = fields.get("use_sliding_window", true);
  const auto kinds = fields.get("layer_types", std::vector<std::string>{});
  const bool listed = !kinds.empty();
  if (!on || window == 0 || (listed && std::count(kinds.begin(), kinds.end(), "sliding_attention") == 0)) return;
  model.sliding_window = window;
  model.sliding_window_every = listed ? window_period(fields, kinds) : every;
}

struct LlamaDefaults {
  double rope_theta = 10000.0;
  bool tied_head = false;
  bool attention_bias = false;
  std::int64_t window_every = 1;
  std::string activation = "silu";
};

/// LLaMA and its many relatives share these field names.
void read_llama_fields(Fields& fields, ModelSpec& model, const LlamaDefaults& defaults = {}) {
  model.hidden = fields.need("hidden_size");
  model.layers = fields.need("num_hidden_layers");
  model.heads = fields.need("num_attention_heads");
  model.vocabulary = fields.need("vocab_size");
  model.ffn_hidden = fields.need("intermediate_size");
  model.kv_heads = fields.get("num_key_value_heads", model.heads);
  model.head_dim = fields.get("head_dim", std::int64_t{0});
  model.norm_epsilon = fields.get("rms_norm_eps", 1e-6);
  model.activation = read_activation(fields, {"hidden_activation", "hidden_act"}, defaults.activation);
  model.tied_head = fields.get("tie_word_embeddings", defaults.tied_head);
  model.qkv_bias = model.projection_bias = fields.get("attention_bias", defaults.attention_bias);
  model.ffn_bias = fields.get("mlp_bias", false);
  read_rope(fields, model, defaults.rope_theta);
  read_window(fields, model, defaults.window_every);
}

void read_llama(Fields& fields, ModelSpec& model) {
  read_llama_fields(fields, model);
}

void read_mixtral(Fields& fields, ModelSpec& model) {
  read_llama_fields(fields, model, {.rope_theta = 1e6});
  model.moe.experts = fields.need("num_local_experts");
  model.moe.experts_per_token = fields.need("num_experts_per_tok");
}

void read_qwen2(Fields& fields, ModelSpec& model) {
  read_llama_fields(fields, model);
  model.qkv_bias = true;  // implied by the model type
  model.projection_bias = false;
}

void read_qwen3(Fields& fields, ModelSpec& model) {
  read_llama_fields(fields, model);
  model.qk_norm = true;
}

/// num_experts, decoder_sparse_step, mlp_only_layers of the Qwen mixtures.
void read_qwen_experts(Fields& fields, ModelSpec& model) {
  model.moe.experts = fields.need({"num_experts", "num_local_experts"});
  model.moe.experts_per_token = fields.need("num_experts_per_tok");
  model.moe.expert_ffn_hidden = fields.need("moe_intermediate_size");
  model.moe.every = fields.get("decoder_sparse_step", std::int64_t{1});
  const auto dense = fields.get("mlp_only_layers", std::vector<std::int64_t>{});
  for (std::size_t i = 0; i < dense.size(); ++i)
    if (dense[i] != static_cast<std::int64_t>(i) || model.moe.every != 1) {
      fields.error("mlp_only_layers",
                   "mlp_only_layers: only the first layers can be dense: [0, 1, ...] with decoder_sparse_step 1");
      return;
    }
  model.moe.dense_first_layers = static_cast<std::int64_t>(dense.size());
}

void read_qwen3_moe(Fields& fields, ModelSpec& model) {
  read_qwen3(fields, model);
  read_qwen_experts(fields, model);
}

void read_qwen2_moe(Fields& fields, ModelSpec& model) {
  read_qwen2(fields, model);
  read_qwen_experts(fields, model);
  model.moe.shared_ffn_hidden = fields.need("shared_expert_intermediate_size");
  model.moe.shared_experts = 1;
  model.moe.shared_expert_gate = true;
}

void read_gemma(Fields& fields, ModelSpec& model) {
  read_llama_fields(fields, model, {.tied_head = true, .activation = "gelu"});
}

void read_gemma2(Fields& fields, ModelSpec& model) {
  read_llama_fields(fields, model, {.tied_head = true, .window_every = 2, .activation = "gelu"});
  model.post_norm = true;
  model.attention_softcap = fields.get("attn_logit_softcapping", 0.0);
  model.logit_softcap = fields.get("final_logit_softcapping", 0.0);
}

void read_olmo2(Fields& fields, ModelSpec& model) {
  read_llama_fields(fields, model, {.rope_theta = 500000.0});
  model.pre_norm = false;
  model.post_norm = model.qk_norm_full = true;
}

void read_gpt_oss(Fields& fields, ModelSpec& model) {
  read_llama_fields(fields, model, {.rope_theta = 150000.0, .attention_bias = true, .window_every = 2});
  model.attention_sinks = true;
  model.moe.experts = fields.need("num_local_experts");
  model.moe.experts_per_token = fields.need({"num_experts_per_tok", "experts_per_token"});
  model.moe.router_bias = model.moe.expert_bias = model.moe.active_without_embedding = true;
}

void read_deepseek(Fields& fields, ModelSpec& model) {
  read_llama_fields(fields, model);
  model.mla.q_lora_rank = fields.get("q_lora_rank", std::int64_t{0});
  model.mla.kv_lora_rank = fields.need("kv_lora_rank");
  model.mla.qk_nope_head_dim = fields.need("qk_nope_head_dim");
  model.mla.qk_rope_head_dim = fields.need("qk_rope_head_dim");
  model.mla.v_head_dim = fields.need("v_head_dim");
  model.kv_heads = model.heads;  // nominal: every head has its own keys, made from the shared latent
  model.head_dim = model.mla.qk_nope_head_dim + model.mla.qk_rope_head_dim;
  model.moe.experts = fields.get("n_routed_experts", std::int64_t{0});
  if (model.moe.experts == 0) return;
  model.moe.experts_per_token = fields.need("num_experts_per_tok");
  model.moe.expert_ffn_hidden = fields.need("moe_intermediate_size");
  model.moe.shared_experts = fields.get("n_shared_experts", std::int64_t{0});
  model.moe.dense_first_layers = fields.get("first_k_dense_replace", std::int64_t{0});
  if (fields.get("moe_layer_freq", std::int64_t{1}) != 1)
    fields.error("moe_layer_freq",
                 "moe_layer_freq: only 1 is understood: every layer after the first dense ones has experts");
  model.moe.score_correction_bias = fields.get("topk_method", std::string{}) == "noaux_tc";
}

constexpr HuggingFaceFamily kFamilies[] = {
    {"llama", read_llama},          {"mistral", read_llama},       {"mixtral", read_mixtral},
    {"qwen2", read_qwen2},          {"qwen2_moe", read_qwen2_moe}, {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},  {"gemma", read_gemma},         {"gemma2", read_gemma2},
    {"phi3", read_llama},           {"olmo2", read_olmo2},         {"gpt_oss", read_gpt_oss},
    {"deepseek_v2", read_deepseek}, {"deepseek_v3", read_deepseek}};

}  // namespace

std::span<const HuggingFaceFamily> llama_families() {
  return kFamilies;
}

}  // namespace reckon
