// The three products of a linear layer with weight [outputs, inputs]. All matrices are 2-D with unit column stride.
// BF16 products run natively where the CPU has BF16 instructions; elsewhere they go through FP32, because the library's
// own BF16 path is tens of times slower there.
#pragma once

#include <ATen/core/Tensor.h>

namespace reckon {

/// y [T, outputs] = x [T, inputs] * weight^T
void linear_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& y);
/// dx [T, inputs] = dy [T, outputs] * weight
void linear_input_gradient(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& dx);
/// gradient [outputs, inputs] += dy^T * x, the gradient in accumulator precision.
void linear_weight_gradient(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& gradient);

/// True if this CPU multiplies BF16 matrices faster through its own instructions: it has AVX512-BF16 or AMX, or a
/// timing of one small product, made once a process, says so (a fast library path on another processor).
bool native_bfloat16_products();

}  // namespace reckon
