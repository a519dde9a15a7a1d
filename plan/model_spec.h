// The shape of a transformer: everything that decides its weights, FLOPs and kept tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

enum class Norm { rms_norm, layer_norm };
enum class Activation { silu, gelu, relu, squared_relu };
enum class Position { rope, learned, alibi, none };

/// Routed experts; `experts` = 0 means a dense model.
struct MoeSpec {
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_ffn_hidden = 0;
  std::int64_t shared_experts = 0;
  std::int64_t shared_ffn_hidden = 0;   // of all shared experts together
  std::int64_t dense_first_layers = 0;  // the first layers use the dense FFN
  std::int64_t every = 1;               // of the rest, every n-th layer is MoE
  bool shared_expert_gate = false;      // one extra hidden -> 1 gate (Qwen-MoE style)
  bool router_bias = false;
  bool score_correction_bias = false;     // DeepSeek-V3's balancing bias, one per expert, not trained by gradient
  bool active_without_embedding = false;  // the vendor's active count leaves the input table out (gpt-oss)
  bool expert_bias = false;
};

/// Multi-head latent attention (DeepSeek V2/V3); `kv_lora_rank` = 0 means ordinary attention.
struct MlaSpec {
  std::int64_t q_lora_rank = 0;  // 0: full-rank query projection
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
};

struct ModelSpec {
  std::string name;
  std::vector<std::string> aliases;  // other names that people use for it
  std::string source;                // where the shape comes from
  std::string family = "llama";      // Hugging Face model_type or the project's own word: llama, qwen2, gpt2, mpt, ...

  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn_hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocabulary = 0;
  std::int64_t position_rows = 0;    // rows of the learned position table
  std::int64_t position_offset = 0;  // row of position 0 (OPT: 2)

  Norm norm = Norm::rms_norm;
  bool norm_bias = false;
  double norm_epsilon = 1e-5;
  Activation activation = Activation::silu;
  bool gated_ffn = true;  // SwiGLU and relatives: gate and up matrices
  Position position = Position::rope;
  double rope_theta = 10000.0;
  double rope_fraction = 1.0;        // share of head_dim that is rotated
  std::string rope_scaling;          // kind of frequency scaling (linear, llama3, yarn, ...), empty = none
  double rope_scaling_factor = 8.0;  // low frequencies are divided by it; defaults of LLaMA 3.1
  double rope_low_frequency_factor = 1.0, rope_high_frequency_factor = 4.0;  // llama3: where scaling begins and ends
  std::int64_t rope_original_positions = 8192;                               // llama3: positions trained before scaling
  std::int64_t sliding_window = 0;                                           // 0: full attention
  std::int64_t sliding_window_every = 1;  // every n-th layer has the window (2 = alternating)

  bool tied_head = false;
  bool qkv_bias = false;
  bool projection_bias = false;
  bool ffn_bias = false;
  bool head_bias = false;
  bool qk_norm = false;          // per-head norm on q and k (Qwen3: head_dim weights)
  bool qk_norm_full = false;     // norm over the whole q and k width (OLMo 2)
  bool parallel_block = false;   // attention and FFN read the same input (NeoX, Falcon)
  bool pre_norm = true;          // norm before attention and FFN (OLMo 2 has none)
  bool post_norm = false;        // norm after attention and FFN (Gemma 2, OLMo 2)
  std::int64_t block_norms = 2;  // input norms per block (Falcon-7B has one shared)
  bool embedding_norm = false;   // BLOOM
  bool attention_sinks = false;  // one learned logit per head (gpt-oss)
  double attention_softcap = 0;  // scores go through softcap * tanh(x / softcap) (Gemma 2); 0 = off
  double logit_softcap = 0;      // the same for the head's logits

  MoeSpec moe;
  MlaSpec mla;

  /// Fields of a config.json that the reader did not understand; shown to the user, never written.
  std::vector<std::string> unread_fields;

  bool is_moe() const { return moe.experts > 0; }
  bool is_mla() const { return mla.kv_lora_rank > 0; }
  bool layer_is_moe(std::int64_t layer) const {
    return is_moe() && layer >= moe.dense_first_layers && (layer - moe.dense_first_layers) % moe.every == moe.every - 1;
  }
};

}  // namespace reckon
