// Plans that many tests start from: one well-known shape and some that are small enough to count by hand.
#pragma once

#include "plan/plan.h"

namespace reckon {

inline Plan llama3_8b(std::int64_t sequence_length) {
  Plan plan;
  ModelSpec& m = plan.model;
  m.name = "llama3-8b";
  m.layers = 32;
  m.hidden = 4096;
  m.ffn_hidden = 14336;
  m.heads = 32;
  m.kv_heads = 8;
  m.head_dim = 128;
  m.vocabulary = 128256;
  plan.batch = {sequence_length, 1, 1};
  return plan;
}

inline Plan llama2_13b(std::int64_t sequence_length) {
  Plan plan = llama3_8b(sequence_length);
  ModelSpec& m = plan.model;
  m.name = "llama2-13b";
  m.layers = 40;
  m.hidden = 5120;
  m.ffn_hidden = 13824;
  m.heads = m.kv_heads = 40;
  m.vocabulary = 32000;
  return plan;
}

/// GPT-2's block at h = 64, a = 4.
inline Plan gpt(std::int64_t sequence_length) {
  Plan plan;
  ModelSpec& m = plan.model;
  m.name = "gpt";
  m.family = "gpt2";
  m.layers = 2;
  m.hidden = 64;
  m.ffn_hidden = 256;
  m.heads = m.kv_heads = 4;
  m.head_dim = 16;
  m.vocabulary = 100;
  m.position_rows = sequence_length;
  m.norm = Norm::layer_norm;
  m.norm_bias = m.qkv_bias = m.projection_bias = m.ffn_bias = true;
  m.activation = Activation::gelu;
  m.gated_ffn = false;
  m.position = Position::learned;
  m.tied_head = true;
  plan.batch = {sequence_length, 1, 1};
  return plan;
}

/// 64 tokens, h = 32, 8 experts of width 24 over 2 ranks, 2 a token, shared experts of width 48.
inline Plan small_moe() {
  Plan plan;
  ModelSpec& m = plan.model;
  m.name = "small-moe";
  m.layers = 2;
  m.hidden = 32;
  m.ffn_hidden = 96;
  m.heads = 4;
  m.kv_heads = 2;
  m.head_dim = 8;
  m.vocabulary = 100;
  m.moe.experts = 8;
  m.moe.experts_per_token = 2;
  m.moe.expert_ffn_hidden = 24;
  m.moe.shared_experts = 2;
  m.moe.shared_ffn_hidden = 48;
  plan.batch = {64, 1, 2};
  plan.parallel.data = 2;
  plan.parallel.expert = 2;
  return plan;
}

/// 4 heads, nope 8 + rope 4, value 6, ranks 16 (query) and 10 (key/value).
inline Plan small_mla() {
  Plan plan;
  ModelSpec& m = plan.model;
  m.name = "small-mla";
  m.layers = 2;
  m.hidden = 32;
  m.ffn_hidden = 96;
  m.heads = m.kv_heads = 4;
  m.head_dim = 12;
  m.vocabulary = 100;
  m.mla = {16, 10, 8, 4, 6};
  plan.batch = {64, 1, 1};
  return plan;
}

}  // namespace reckon
