#include "plan/activation_accounting.h"

#include <stdexcept>

namespace reckon {

LayerUnits layer_units(ActivationStack stack, double ffn_ratio, double kv_ratio) {
  const double r = ffn_ratio;
  const double query_key_value = 1 + 2 * kv_ratio;
  switch (stack) {
    case ActivationStack::megatron_unfused: return {1, query_key_value + 2, 1, 4, 1, 3 * r, r};
    case ActivationStack::coat: return {1, query_key_value + 2, 1, 1, 0.5, 1.5 * r, 0.5 * r};
    case ActivationStack::agoq: return {0, query_key_value + 2, 0.25, 0.5, 0, 0.5 * r, 0};
    case ActivationStack::fused: return {1, query_key_value + 1, 0, 2, 1, 2 * r, r};
    case ActivationStack::lossless: return {0, query_key_value + 1, 0, 2, 0, 2 * r, 0};
  }
  throw std::logic_error("unknown activation stack");
}

double layer_bytes(ActivationStack stack, const ModelSpec& model, double tokens) {
  const double ffn_ratio = static_cast<double>(model.ffn_hidden) / static_cast<double>(model.hidden);
  const double kv_ratio = static_cast<double>(model.kv_heads) / static_cast<double>(model.heads);
  return layer_units(stack, ffn_ratio, kv_ratio).sum() * tokens * static_cast<double>(model.hidden) * 2;
}

}  // namespace reckon
