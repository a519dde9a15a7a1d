#include "runtime/train/device/flash_attention.h"

namespace reckon {

bool flash_attention_forward(std::span<const AttentionTask>, std::int64_t, const at::Tensor&, const KeyValue&,
                             const AttentionState&) {
  return false;
}

bool flash_attention_backward(std::span<const AttentionTask>, std::int64_t, const at::Tensor&, const KeyValue&,
                              const at::Tensor&, const AttentionGradient&, const KeyValue&) {
  return false;
}

}  // namespace reckon
