// Rotary position embedding of the query and key heads inside a fused q|k|v buffer.
#pragma once

#include <ATen/core/Tensor.h>

#include "plan/model_spec.h"

namespace reckon {

/// Cosines and sines of every position and frequency, [positions, rotated / 2] in accumulator precision.
struct RotaryTable {
  at::Tensor cosine, sine;
  std::int64_t rotated = 0;  // elements of a head that turn
};
RotaryTable rotary_table(const ModelSpec& model, std::int64_t positions, at::ScalarType accumulator);

/// Turns `heads` heads of `head_dim` at the start of each row of `x` (2-D, unit column stride) by positions[row]
/// (int32); direction +1 forward, -1 for the gradient.
void rotate_heads(const at::Tensor& x, std::int64_t heads, std::int64_t head_dim, const at::Tensor& positions,
                  const RotaryTable& table, int direction);

}  // namespace reckon
