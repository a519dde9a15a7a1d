// RMSNorm of every head of queries or keys with one weight for all (Qwen3). Rows are tokens; heads of a token lie side
// by side, tokens as far apart as the buffer that q, k and v share.
#pragma once

#include <ATen/core/Tensor.h>

namespace reckon {

/// x, y [tokens, heads * width], statistics [tokens, heads] (accumulator precision): row-strided. weight [width].
void head_norm_forward(double epsilon, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& y,
                       const at::Tensor& statistics);
/// dx = gradient of x; adds to weight_gradient [width] (accumulator precision).
void head_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& statistics, const at::Tensor& dx, const at::Tensor& weight_gradient);

}  // namespace reckon
