// at::Tensor -> typed pointers of the kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include <stdexcept>

#include "runtime/train/kernels/element.h"

namespace reckon {

/// Calls run(T{}) with the kernel element type of `tensor`: float, double or kernels::BFloat16.
template <class Run>
auto with_element_type(const at::Tensor& tensor, Run run) {
  switch (tensor.scalar_type()) {
    case at::kFloat: return run(float{});
    case at::kDouble: return run(double{});
    case at::kBFloat16: return run(kernels::BFloat16{});
    default: throw std::logic_error("the training kernels work on fp32, fp64 and bf16 tensors");
  }
}

/// First element; null for an undefined tensor.
template <class T>
T* pointer(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.data_ptr()) : nullptr;
}

/// Element type of sums and statistics over `type`: fp64 for fp64, otherwise fp32.
inline at::ScalarType accumulator_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

/// Elements of the last dimension, and of all the others.
inline std::int64_t width_of(const at::Tensor& tensor) {
  return tensor.size(-1);
}
inline std::int64_t rows_of(const at::Tensor& tensor) {
  return tensor.numel() / tensor.size(-1);
}

}  // namespace reckon
