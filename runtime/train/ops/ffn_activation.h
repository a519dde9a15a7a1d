// Activation of the FFN on 2-D tensors: gated (rows of gate | up) or plain.
#pragma once

#include <ATen/core/Tensor.h>

#include "plan/model_spec.h"

namespace reckon {

/// first_product [T, 2 f] (gated) or [T, f] -> hidden [T, f].
void activation_forward(Activation activation, bool gated, const at::Tensor& first_product, const at::Tensor& hidden);
/// Gradient of first_product, which may be its storage (plain: also hidden_gradient's).
void activation_backward(Activation activation, bool gated, const at::Tensor& hidden_gradient,
                         const at::Tensor& first_product, const at::Tensor& gradient);

}  // namespace reckon
