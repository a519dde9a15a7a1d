// Copies between parts of fused buffers.
#pragma once

#include <ATen/core/Tensor.h>

namespace reckon {

/// target [rows, width] = source; both of one element type, with unit column stride and any row stride.
void copy_into(const at::Tensor& target, const at::Tensor& source);

}  // namespace reckon
