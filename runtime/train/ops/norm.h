// RMSNorm or LayerNorm of the rows of a 2-D tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include "plan/model_spec.h"

namespace reckon {

struct NormWeights {
  at::Tensor weight, bias;                    // [width]; no bias for RMSNorm
  at::Tensor weight_gradient, bias_gradient;  // accumulator precision
};

/// Fills y (like x) and statistics (accumulator precision; rows, or rows x 2 for LayerNorm).
void norm_forward(Norm kind, double epsilon, const at::Tensor& x, const NormWeights& weights, const at::Tensor& y,
                  const at::Tensor& statistics);
/// dx = gradient of x, or += with `accumulate`; without it dx may be dy. Adds to the weight gradients.
void norm_backward(Norm kind, const at::Tensor& dy, const at::Tensor& x, const NormWeights& weights,
                   const at::Tensor& statistics, const at::Tensor& dx, bool accumulate);

}  // namespace reckon
