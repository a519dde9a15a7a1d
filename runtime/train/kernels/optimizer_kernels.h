// One pass over a flat slice of weights, gradients and states.
#pragma once

#include <cstdint>

#include "runtime/train/kernels/element.h"

namespace reckon::kernels {

/// AdamW with decoupled decay (1711.05101), step counted from 1; what torch.optim.AdamW computes.
struct AdamwStep {
  float learning_rate, beta1, beta2, epsilon, weight_decay;
  float gradient_scale;           // gradients are multiplied by it first (clipping)
  float first_bias, second_bias;  // 1 - beta1^step, 1 - beta2^step
};

/// Updates `weight` (fp32: the weights themselves or the master copy) and both moments.
void adamw(const AdamwStep& step, float* weight, float* first_moment, float* second_moment, const float* gradient,
           std::int64_t count);
/// The same, and writes the rounded new weights to `compute_weight`.
void adamw(const AdamwStep& step, float* weight, float* first_moment, float* second_moment, const float* gradient,
           BFloat16* compute_weight, std::int64_t count);

/// Moments in 8 bits, blocks with FP32 scales: first = code * scale, second = (code * scale)^2. Roots halve the range
/// of exponents that a block has to span; a positive second moment never becomes 0, so that no update explodes.
struct NarrowMoments {
  std::int8_t* first;
  std::uint8_t* second_root;
  float *first_scales, *second_scales;  // one a block
};

/// adamw on narrow moments, rounded stochastically with the numbers of `seed`: to nearest, a moment whose decay is less
/// than half a step would never fall. `compute_weight` may be null.
void adamw(const AdamwStep& step, float* weight, const NarrowMoments& moments, std::int64_t block, std::uint64_t seed,
           const float* gradient, BFloat16* compute_weight, std::int64_t count);

/// weight -= learning_rate * (gradient * scale + weight_decay * weight)
void sgd(float learning_rate, float weight_decay, float gradient_scale, float* weight, const float* gradient,
         std::int64_t count);

/// Sum of squares of float or double values: blocks of 4096 in their own precision, blocks added in double.
template <class T>
double sum_of_squares(const T* values, std::int64_t count);

}  // namespace reckon::kernels
