// What published stacks keep of one LLaMA-like layer, in units U = tokens x hidden x 2 bytes (one bf16 hidden tensor).
// The project's own op list keeps less than Megatron-LM's unfused stack; comparisons with the AGoQ paper
// (arXiv 2605.00539, table 1) need that stack's count.
#pragma once

#include <cstdint>

#include "plan/model_spec.h"
#include "plan/units.h"

namespace reckon {

/// One column of the paper's table by group of tensors, in U.
struct LayerUnits {
  double qkv = 0;         // input of the QKV product
  double attention = 0;   // q, k, v, output and one more hidden tensor
  double projection = 0;  // input of the output projection
  double norms = 0;       // two norm inputs; fp32 in the unfused stack
  double ffn_input = 0;
  double activation = 0;  // gate, up and what SiLU and the product keep
  double down_input = 0;

  double sum() const { return qkv + attention + projection + norms + ffn_input + activation + down_input; }
};

enum class ActivationStack {
  megatron_unfused,  // 28U at f/h = 4: fp32 norms, SiLU and its product kept apart
  coat,              // arXiv 2410.19313 as AGoQ counts it: 16.5U
  agoq,              // 7.75U: 4-bit storage, elementwise results recomputed, attention at 16 bits
  fused,             // one kernel per norm and activation, output shared with the projection's input
  lossless,          // fused, elementwise results recomputed, nothing quantized
};

/// Units of one layer. `ffn_ratio` is f/h, `kv_ratio` KV heads / heads (1 = every head its own, as in the paper).
/// Scales of the quantized formats are not counted, as in the paper.
LayerUnits layer_units(ActivationStack stack, double ffn_ratio, double kv_ratio);

/// Bytes of one layer for `tokens` tokens.
double layer_bytes(ActivationStack stack, const ModelSpec& model, double tokens);

}  // namespace reckon
