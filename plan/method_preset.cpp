#include "plan/method_preset.h"

namespace reckon {

namespace {

/// AGoQ (2605.00539): what attention reads stays at 16 bits, inputs of norms, of the output projection and of the
/// SwiGLU product are stored at four bits, what follows from them is recomputed; gradients and moments at eight bits,
/// reduced by all-to-all and an FP32 sum.
constexpr const char* kAgoqClasses =
    "activations.classes={query: bf16, key: bf16, value: bf16, attention_output: bf16, qkv_input: recompute, "
    "ffn_input: recompute, down_input: recompute, head_input: bf16}";

std::vector<std::string> agoq() {
  return {"activations.stored=fp4_e2m1",
          "activations.block=128",
          "activations.bits_by_stage=auto",
          "activations.recompute=none",
          kAgoqClasses,
          "gradients.stored=fp8_e4m3",
          "gradients.wire=fp8_e4m3",
          "gradients.reduce=all_to_all_sum",
          "optimizer.states=int8"};
}

}  // namespace

const std::vector<MethodPreset>& method_presets() {
  static const std::vector<MethodPreset> presets = {
      {"megatron",
       "Megatron-LM: 16-bit activations, as few fully recomputed layers as fit, replicated optimizer",
       {"activations.recompute=full", "activations.recompute_layers=auto", "parallel.zero=0"}},
      {"zero1",
       "Megatron-LM with optimizer states sharded over the replicas",
       {"activations.recompute=full", "activations.recompute_layers=auto", "parallel.zero=1"}},
      {"agoq", "AGoQ: 4-bit activations, 8-bit gradients and moments", agoq()},
      {"packing",
       "Packing: rows packed with documents under one causal triangle",
       {"documents.rows=packed", "documents.attention=whole_row", "documents.placement=auto"}},
      {"batching",
       "Batching: one document a row, padded",
       {"documents.rows=padded", "documents.attention=whole_row", "documents.placement=auto"}},
      {"hsap",
       "HSAP: attention inside each document only, transfers across documents dropped",
       {"documents.rows=packed", "documents.attention=per_document", "documents.placement=auto"}},
  };
  return presets;
}

std::vector<std::string> method_settings(const std::string& name) {
  for (const MethodPreset& preset : method_presets()) {
    if (preset.name == name) return preset.settings;
  }
  return {};
}

}  // namespace reckon
