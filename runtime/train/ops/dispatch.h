// at::Tensor -> typed pointers of the kernels, for the host or, where the tensor lies there, for a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <stdexcept>

#include "runtime/train/device/torch_device.h"
#include "runtime/train/kernels/element.h"

namespace reckon {

/// Calls run(T{}, place...) with the kernel element type of `tensor`: float, double or kernels::BFloat16. `place` is
/// nothing for a tensor of the host, else the DeviceStream that the kernels of kernels/device take as a last argument.
template <class Run>
auto with_element_type(const at::Tensor& tensor, Run run) {
  const auto run_there = [&](auto type) {
    if (const auto stream = device_stream(tensor)) return run(type, *stream);
    return run(type);
  };
  switch (tensor.scalar_type()) {
    case at::kFloat: return run_there(float{});
    case at::kDouble: return run_there(double{});
    case at::kBFloat16: return run_there(kernels::BFloat16{});
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
