// The FFN's elementwise functions with their gradients. Gated: hidden = f(gate) * up, where a row of `gate_up` holds
// `width` gates, then `width` ups (2002.05202). Plain: hidden = f(x). f is silu, gelu (tanh form, 1606.08415), relu or
// squared relu (2109.08668).
#pragma once

#include <cstdint>

#include "plan/model_spec.h"
#include "runtime/train/kernels/element.h"

namespace reckon::kernels {

template <class T>
void gated_forward(Activation activation, const T* gate_up, T* hidden, std::int64_t rows, std::int64_t width);
/// gradient may be gate_up.
template <class T>
void gated_backward(Activation activation, const T* hidden_gradient, const T* gate_up, T* gradient, std::int64_t rows,
                    std::int64_t width);

template <class T>
void plain_forward(Activation activation, const T* x, T* hidden, std::int64_t count);
/// gradient may be hidden_gradient.
template <class T>
void plain_backward(Activation activation, const T* hidden_gradient, const T* x, T* gradient, std::int64_t count);

}  // namespace reckon::kernels
