// Activation of the FFN on 2-D tensors: gated (gate and up) or plain (one hidden tensor).
#pragma once

#include <ATen/core/Tensor.h>

#include "plan/model_spec.h"

namespace reckon {

/// gate and up [T, f] with unit column stride, or x [T, f] alone (`up` undefined) -> hidden [T, f].
void activation_forward(Activation activation, const at::Tensor& gate, const at::Tensor& up, const at::Tensor& hidden);
/// Gated: `gradient` [T, 2 f] has rows of gate | up, which may be the buffer that they lie in. Plain: [T, f], which may
/// be hidden_gradient.
void activation_backward(Activation activation, const at::Tensor& hidden_gradient, const at::Tensor& gate,
                         const at::Tensor& up, const at::Tensor& gradient);

}  // namespace reckon
