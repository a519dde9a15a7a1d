// GPT-2 and its relatives: every family has names of its own for the same few sizes.
#include "plan/hugging_face_families.h"

namespace reckon {

namespace {

using Fields = HuggingFaceFields;

/// Layer norms with bias and a plain FFN, as in GPT-2 and its relatives.
void set_gpt_block(ModelSpec& model, bool bias) {
  model.norm = Norm::layer_norm;
  model.norm_bias = true;
  model.gated_ffn = false;
  model.qkv_bias = model.projection_bias = model.ffn_bias = bias;
}

void read_gpt2(Fields& fields, ModelSpec& model) {
  set_gpt_block(model, true);
  model.hidden = fields.need({"n_embd", "hidden_size"});
  model.layers = fields.need({"n_layer", "num_hidden_layers"});
  model.heads = fields.need({"n_head", "num_attention_heads"});
  model.vocabulary = fields.need("vocab_size");
  model.ffn_hidden = fields.get("n_inner", 4 * model.hidden);
  model.position = Position::learned;
  model.position_rows = fields.get({"max_position_embeddings", "n_positions"}, std::int64_t{1024});
  model.norm_epsilon = fields.get("layer_norm_epsilon", 1e-5);
  model.activation = read_activation(fields, {"activation_function"}, "gelu_new");
  model.tied_head = fields.get("tie_word_embeddings", true);
}

void read_gpt_neox(Fields& fields, ModelSpec& model) {
  set_gpt_block(model, true);
  model.hidden = fields.need("hidden_size");
  model.layers = fields.need("num_hidden_layers");
  model.heads = fields.need("num_attention_heads");
  model.vocabulary = fields.need("vocab_size");
  model.ffn_hidden = fields.need("intermediate_size");
  model.norm_epsilon = fields.get("layer_norm_eps", 1e-5);
  model.activation = read_activation(fields, {"hidden_act"}, "gelu");
  model.tied_head = fields.get("tie_word_embeddings", false);
  model.parallel_block = fields.get("use_parallel_residual", true);
  model.qkv_bias = model.projection_bias = fields.get("attention_bias", true);
  model.rope_fraction = 0.25;
  read_rope(fields, model, 10000.0);
}

/// Phi 1 to 2: attention and FFN read the same norm; biases everywhere, the head included.
void read_phi(Fields& fields, ModelSpec& model) {
  set_gpt_block(model, true);
  model.hidden = fields.need("hidden_size");
  model.layers = fields.need("num_hidden_layers");
  model.heads = fields.need("num_attention_heads");
  model.kv_heads = fields.get("num_key_value_heads", model.heads);
  model.vocabulary = fields.need("vocab_size");
  model.ffn_hidden = fields.need("intermediate_size");
  model.norm_epsilon = fields.get("layer_norm_eps", 1e-5);
  model.activation = read_activation(fields, {"hidden_act"}, "gelu_new");
  model.tied_head = fields.get("tie_word_embeddings", false);
  model.head_bias = model.parallel_block = true;
  model.block_norms = 1;
  if (fields.get("qk_layernorm", false))
    fields.error("qk_layernorm", "qk_layernorm: norms of queries and keys with bias are not understood");
  model.rope_fraction = 0.5;
  read_rope(fields, model, 10000.0);
}

void read_falcon(Fields& fields, ModelSpec& model) {
  set_gpt_block(model, fields.get("bias", false));
  model.hidden = fields.need("hidden_size");
  model.layers = fields.need({"num_hidden_layers", "n_layer"});
  model.heads = fields.need({"num_attention_heads", "n_head"});
  model.vocabulary = fields.need("vocab_size");
  model.ffn_hidden = fields.get("ffn_hidden_size", 4 * model.hidden);
  model.norm_epsilon = fields.get("layer_norm_epsilon", 1e-5);
  model.activation = read_activation(fields, {"activation"}, "gelu");
  model.tied_head = fields.get("tie_word_embeddings", true);
  const bool grouped = fields.get("new_decoder_architecture", false);
  const bool one_key_head = fields.get("multi_query", true);
  const std::int64_t listed = fields.get({"num_kv_heads", "n_head_kv"}, model.heads);
  model.kv_heads = grouped ? listed : one_key_head ? 1 : model.heads;
  model.parallel_block = fields.get("parallel_attn", true) || grouped;
  const std::int64_t parallel_norms = fields.get("num_ln_in_parallel_attn", std::int64_t{grouped ? 2 : 1});
  model.block_norms = model.parallel_block ? parallel_norms : 2;
  if (fields.get("apply_residual_connection_post_layernorm", false))
    fields.error("apply_residual_connection_post_layernorm",
                 "apply_residual_connection_post_layernorm: true is not understood");
  read_rope(fields, model, 10000.0);
  if (fields.get("alibi", false)) model.position = Position::alibi;
}

void read_bloom(Fields& fields, ModelSpec& model) {
  set_gpt_block(model, true);
  model.hidden = fields.need({"n_embed", "hidden_size"});
  model.layers = fields.need({"n_layer", "num_hidden_layers"});
  model.heads = fields.need({"num_attention_heads", "n_head"});
  model.vocabulary = fields.need("vocab_size");
  model.ffn_hidden = fields.get("n_inner", 4 * model.hidden);
  model.norm_epsilon = fields.get("layer_norm_epsilon", 1e-5);
  model.activation = Activation::gelu;
  model.tied_head = fields.get("tie_word_embeddings", true);
  model.position = Position::alibi;
  model.embedding_norm = true;
  if (fields.get("apply_residual_connection_post_layernorm", false))
    fields.error("apply_residual_connection_post_layernorm",
                 "apply_residual_connection_post_layernorm: true is not understood");
}

void read_opt(Fields& fields, ModelSpec& model) {
  set_gpt_block(model, fields.get("enable_bias", true));
  model.hidden = fields.need("hidden_size");
  model.layers = fields.need("num_hidden_layers");
  model.heads = fields.need("num_attention_heads");
  model.vocabulary = fields.need("vocab_size");
  model.ffn_hidden = fields.need("ffn_dim");
  model.activation = read_activation(fields, {"activation_function"}, "relu");
  model.tied_head = fields.get("tie_word_embeddings", true);
  model.norm_bias = fields.get("layer_norm_elementwise_affine", true);
  model.position = Position::learned;
  model.position_offset = 2;  // rows 0 and 1 are never used
  model.position_rows = fields.get("max_position_embeddings", std::int64_t{2048}) + model.position_offset;
  if (!fields.get("do_layer_norm_before", true))
    fields.error("do_layer_norm_before",
                 "do_layer_norm_before: false (norms after attention and FFN) is not understood");
  if (!model.norm_bias)
    fields.error("layer_norm_elementwise_affine",
                 "layer_norm_elementwise_affine: false (norms without weights) is not understood");
  if (fields.get("word_embed_proj_dim", model.hidden) != model.hidden)
    fields.error("word_embed_proj_dim",
                 "word_embed_proj_dim: an embedding narrower than hidden_size is not understood");
}

void read_mpt(Fields& fields, ModelSpec& model) {
  set_gpt_block(model, !fields.get("no_bias", false));
  model.norm_bias = model.ffn_bias;
  model.hidden = fields.need("d_model");
  model.layers = fields.need("n_layers");
  model.heads = fields.need("n_heads");
  model.vocabulary = fields.need("vocab_size");
  model.ffn_hidden = fields.get("expansion_ratio", std::int64_t{4}) * model.hidden;
  model.activation = Activation::gelu;
  model.tied_head = fields.get("tie_word_embeddings", true);
  model.kv_heads = fields.get_nested("attn_config", "kv_n_heads", model.heads);
  if (fields.get_nested("attn_config", "qk_ln", false))
    fields.error("attn_config", "attn_config.qk_ln: norms of queries and keys with bias are not understood");
  const bool learned = fields.get("learned_pos_emb", true);
  model.position_rows = fields.get("max_seq_len", std::int64_t{2048});
  model.position = learned ? Position::learned : Position::none;
  if (fields.get_nested("attn_config", "alibi", false)) model.position = Position::alibi;
}

constexpr HuggingFaceFamily kFamilies[] = {{"phi", read_phi},       {"gpt2", read_gpt2},   {"gpt_neox", read_gpt_neox},
                                           {"falcon", read_falcon}, {"bloom", read_bloom}, {"opt", read_opt},
                                           {"mpt", read_mpt}};

}  // namespace

std::span<const HuggingFaceFamily> gpt_families() {
  return kFamilies;
}

}  // namespace reckon
