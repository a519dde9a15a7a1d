#include "plan/hugging_face_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "plan/check_model.h"
#include "plan/hugging_face_fields.h"

namespace reckon {

namespace {

using Fields = HuggingFaceFields;

/// Fields without influence on shapes, memory and time: names, token ids, dropout, initial values, generation, limits
/// of the context, multipliers, routing rules that do not change how many experts a token visits.
constexpr std::array kWithoutInfluence = {"architectures",
                                          "model_type",
                                          "_name_or_path",
                                          "name_or_path",
                                          "auto_map",
                                          "transformers_version",
                                          "torch_dtype",
                                          "dtype",
                                          "use_cache",
                                          "cache_implementation",
                                          "bos_token_id",
                                          "eos_token_id",
                                          "pad_token_id",
                                          "unk_token_id",
                                          "sep_token_id",
                                          "decoder_start_token_id",
                                          "initializer_range",
                                          "init_std",
                                          "init_device",
                                          "emb_pdrop",
                                          "embd_pdrop",
                                          "resid_pdrop",
                                          "attn_pdrop",
                                          "dropout",
                                          "attention_dropout",
                                          "hidden_dropout",
                                          "activation_dropout",
                                          "layerdrop",
                                          "classifier_dropout",
                                          "prefix",
                                          "id2label",
                                          "label2id",
                                          "problem_type",
                                          "task_specific_params",
                                          "return_dict",
                                          "output_attentions",
                                          "output_hidden_states",
                                          "gradient_checkpointing",
                                          "tokenizer_class",
                                          "n_ctx",
                                          "max_position_embeddings",
                                          "initial_context_length",
                                          "original_max_position_embeddings",
                                          "seq_length",
                                          "max_window_layers",
                                          "pretraining_tp",
                                          "slow_but_exact",
                                          "attention_softmax_in_fp32",
                                          "masked_softmax_fusion",
                                          "summary_activation",
                                          "summary_first_dropout",
                                          "summary_proj_to_labels",
                                          "summary_type",
                                          "summary_use_proj",
                                          "scale_attn_weights",
                                          "scale_attn_by_inverse_layer_idx",
                                          "reorder_and_upcast_attn",
                                          "skip_bias_add",
                                          "offset_alibi",
                                          "query_pre_attn_scalar",
                                          "router_aux_loss_coef",
                                          "output_router_logits",
                                          "router_jitter_noise",
                                          "norm_topk_prob",
                                          "topk_method",
                                          "n_group",
                                          "topk_group",
                                          "routed_scaling_factor",
                                          "scoring_func",
                                          "aux_loss_alpha",
                                          "seq_aux",
                                          "ep_size",
                                          "experts_per_token",
                                          "swiglu_limit",
                                          "logit_scale",
                                          "verbose",
                                          "use_bfloat16",
                                          "bias_dropout_fusion",
                                          "do_sample",
                                          "_remove_final_layer_norm",
                                          "rope_interleave",
                                          "is_decoder"};

Activation read_activation(Fields& fields, std::initializer_list<std::string_view> names, std::string otherwise) {
  static const std::map<std::string, Activation, std::less<>> kKnown = {
      {"silu", Activation::silu},          {"swish", Activation::silu},
      {"gelu", Activation::gelu},          {"gelu_new", Activation::gelu},
      {"gelu_fast", Activation::gelu},     {"gelu_pytorch_tanh", Activation::gelu},
      {"gelu_python", Activation::gelu},   {"relu", Activation::relu},
      {"relu2", Activation::squared_relu}, {"squared_relu", Activation::squared_relu}};
  const std::string name = fields.get(names, std::move(otherwise));
  if (const auto found = kKnown.find(name); found != kKnown.end()) return found->second;
  fields.error(*names.begin(), fmt::format("the activation '{}' is not one of silu, gelu, relu, relu2", name));
  return Activation::silu;
}

/// rope_theta, partial_rotary_factor and rope_scaling, also inside the rope_parameters of newer files.
void read_rope(Fields& fields, ModelSpec& model, double theta) {
  model.position = Position::rope;
  model.rope_theta = fields.get({"rope_theta", "rotary_emb_base"}, theta);
  model.rope_fraction = fields.get({"partial_rotary_factor", "rotary_pct"}, model.rope_fraction);
  model.rope_theta = fields.get_nested("rope_parameters", "rope_theta", model.rope_theta);
  for (const char* outer : {"rope_scaling", "rope_parameters"}) {
    for (const char* kind : {"type", "rope_type"})
      model.rope_scaling = fields.get_nested(outer, kind, model.rope_scaling);
    model.rope_scaling_factor = fields.get_nested(outer, "factor", model.rope_scaling_factor);
    model.rope_low_frequency_factor = fields.get_nested(outer, "low_freq_factor", model.rope_low_frequency_factor);
    model.rope_high_frequency_factor = fields.get_nested(outer, "high_freq_factor", model.rope_high_frequency_factor);
    model.rope_original_positions =
        fields.get_nested(outer, "original_max_position_embeddings", model.rope_original_positions);
  }
  if (model.rope_scaling == "default") model.rope_scaling.clear();
}

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

struct Family {
  std::string_view model_type;
  void (*read)(Fields&, ModelSpec&);
};

constexpr Family kFamilies[] = {{"llama", read_llama},
                                {"mistral", read_llama},
                                {"mixtral", read_mixtral},
                                {"qwen2", read_qwen2},
                                {"qwen2_moe", read_qwen2_moe},
                                {"qwen3", read_qwen3},
                                {"qwen3_moe", read_qwen3_moe},
                                {"gemma", read_gemma},
                                {"gemma2", read_gemma2},
                                {"phi", read_phi},
                                {"phi3", read_llama},
                                {"olmo2", read_olmo2},
                                {"gpt_oss", read_gpt_oss},
                                {"deepseek_v2", read_deepseek},
                                {"deepseek_v3", read_deepseek},
                                {"gpt2", read_gpt2},
                                {"gpt_neox", read_gpt_neox},
                                {"falcon", read_falcon},
                                {"bloom", read_bloom},
                                {"opt", read_opt},
                                {"mpt", read_mpt}};

/// Neither read nor without influence is what is not understood. A field that says "no" (null, false, 0) asks for
/// nothing.
HuggingFaceUse use_of(const YamlEntry& entry, const std::vector<std::string>& unused) {
  if (std::find(unused.begin(), unused.end(), entry.key) == unused.end()) return HuggingFaceUse::read;
  const YamlValue& value = entry.value;
  const bool says_no = value.kind == YamlValue::Kind::null ||
                       (value.kind == YamlValue::Kind::scalar && (value.text == "false" || value.text == "0"));
  const bool known =
      std::find(kWithoutInfluence.begin(), kWithoutInfluence.end(), entry.key) != kWithoutInfluence.end();
  return says_no || known ? HuggingFaceUse::no_influence : HuggingFaceUse::not_understood;
}

}  // namespace

bool is_hugging_face_config(const YamlValue& document) {
  return document.find("model_type") != nullptr;
}

std::vector<std::string> known_model_types() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.model_type);
  return names;
}

ModelSpec read_hugging_face_config(const YamlValue& document, const std::string& file) {
  return read_hugging_face_fields(document, file).model;
}

HuggingFaceReading read_hugging_face_fields(const YamlValue& document, const std::string& file) {
  std::vector<Diagnostic> errors;
  Fields fields(document, file, errors);
  ModelSpec model;
  model.family = fields.get("model_type", std::string{});
  const Family* family = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                      [&](const Family& f) { return f.model_type == model.family; });
  if (family == std::end(kFamilies)) {
    fields.error("model_type", fmt::format("the model_type '{}' is not one of {}", model.family,
                                           fmt::join(known_model_types(), ", ")));
    throw ConfigError(std::move(errors));
  }
  family->read(fields, model);
  fill_derived_sizes(model);
  if (errors.empty())
    for (const Diagnostic& problem : check_model(model)) errors.push_back({problem.message, file, 0, 0, problem.key});
  if (!errors.empty()) throw ConfigError(std::move(errors));
  HuggingFaceReading reading;
  const std::vector<std::string> unused = fields.unused();
  for (const YamlEntry& entry : document.entries) {
    reading.fields.push_back({entry.key, entry.line, use_of(entry, unused)});
    if (reading.fields.back().use == HuggingFaceUse::not_understood) model.unread_fields.push_back(entry.key);
  }
  reading.model = std::move(model);
  return reading;
}

}  // namespace reckon
