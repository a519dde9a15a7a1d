// RMSNorm, y = x / sqrt(mean(x^2) + epsilon) * weight (1910.07467), and LayerNorm, y = (x - mean) / sqrt(variance +
// epsilon) * weight + bias (1607.06450), over dense rows of `width`, with their gradients.
// `statistics` has one value a row for RMSNorm (reciprocal root), two for LayerNorm (mean, reciprocal deviation).
// Weight and bias gradients are added to what the target holds.
#pragma once

#include <cstdint>

#include "runtime/train/kernels/element.h"

namespace reckon::kernels {

template <class T>
void rms_norm_forward(const T* x, const T* weight, T* y, Accumulator<T>* statistics, std::int64_t rows,
                      std::int64_t width, double epsilon);
/// dx = gradient, or += with `accumulate` (the gradient that reaches x on another way). dx may be dy if not
/// accumulated.
template <class T>
void rms_norm_backward(const T* dy, const T* x, const T* weight, const Accumulator<T>* statistics, T* dx,
                       bool accumulate, Accumulator<T>* weight_gradient, std::int64_t rows, std::int64_t width);

/// `bias` and `bias_gradient` may be null.
template <class T>
void layer_norm_forward(const T* x, const T* weight, const T* bias, T* y, Accumulator<T>* statistics, std::int64_t rows,
                        std::int64_t width, double epsilon);
template <class T>
void layer_norm_backward(const T* dy, const T* x, const T* weight, const Accumulator<T>* statistics, T* dx,
                         bool accumulate, Accumulator<T>* weight_gradient, Accumulator<T>* bias_gradient,
                         std::int64_t rows, std::int64_t width);

}  // namespace reckon::kernels
