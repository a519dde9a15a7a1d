// y = x / sqrt(mean(x^2) + epsilon) * weight over rows of `width` (Zhang & Sennrich, 1910.07467), and its gradient.
// Every pointer is dense; `reciprocal` has one value a row; weight gradients are added to the main gradient buffer.
#pragma once

#include <cstdint>

#include "runtime/train/kernels/element.h"

namespace reckon::kernels {

#define RECKON_DECLARE_RMS_NORM(T)                                                                           \
  void rms_norm_forward(const T* x, const T* weight, T* y, Accumulator<T>* reciprocal, std::int64_t rows,    \
                        std::int64_t width, double epsilon);                                                 \
  /** dx may be dy. With `residual` (dense, same shape) dx = gradient + residual, and dx may be residual. */ \
  void rms_norm_backward(const T* dy, const T* x, const T* weight, const Accumulator<T>* reciprocal,         \
                         const T* residual, T* dx, Accumulator<T>* weight_gradient, std::int64_t rows,       \
                         std::int64_t width)
RECKON_DECLARE_RMS_NORM(float);
RECKON_DECLARE_RMS_NORM(double);
RECKON_DECLARE_RMS_NORM(BFloat16);
#undef RECKON_DECLARE_RMS_NORM

}  // namespace reckon::kernels
