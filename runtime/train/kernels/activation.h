// The FFN's elementwise functions with their gradients. Gated: hidden = f(gate) * up (2002.05202). Plain: hidden =
// f(x). f is silu, gelu (tanh form, 1606.08415), relu or squared relu (2109.08668).
#pragma once

#include <cstdint>

#include "plan/model_spec.h"
#include "runtime/train/kernels/element.h"

namespace reckon::kernels {

/// Gates and ups of each row: halves of one buffer, or tensors of their own.
template <class T>
struct GateAndUp {
  const T* gate;
  std::int64_t gate_stride;
  const T* up;
  std::int64_t up_stride;
};

template <class T>
void gated_forward(Activation activation, GateAndUp<T> in, T* hidden, std::int64_t rows, std::int64_t width);
/// A row of `gradient` holds the `width` gates' gradients, then the ups'; the buffer may be that of gate and up.
template <class T>
void gated_backward(Activation activation, const T* hidden_gradient, GateAndUp<T> in, T* gradient, std::int64_t rows,
                    std::int64_t width);

template <class T>
void plain_forward(Activation activation, const T* x, T* hidden, std::int64_t count);
/// gradient may be hidden_gradient.
template <class T>
void plain_backward(Activation activation, const T* hidden_gradient, const T* x, T* gradient, std::int64_t count);

}  // namespace reckon::kernels
