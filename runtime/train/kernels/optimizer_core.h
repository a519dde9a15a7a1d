// The optimizer's arithmetic for one element: the same lines on host and device.
#pragma once

#include "runtime/train/kernels/optimizer_kernels.h"

namespace reckon::kernels {

/// New weight of one element; moments are updated in place.
[[gnu::always_inline]] RECKON_HOST_DEVICE inline float adamw_element(const AdamwStep& s, float step_size,
                                                                     float root_bias, float weight, float& first,
                                                                     float& second, float raw_gradient) {
  const float gradient = raw_gradient * s.gradient_scale;
  first += (gradient - first) * (1.0f - s.beta1);
  second = second * s.beta2 + gradient * gradient * (1.0f - s.beta2);
  const float decayed = weight - s.learning_rate * s.weight_decay * weight;
  return decayed - step_size * first / (std::sqrt(second) * root_bias + s.epsilon);
}

/// 64 well-mixed bits of a number (SplitMix64).
[[gnu::always_inline]] RECKON_HOST_DEVICE inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// In [0, 1): 24 bits.
[[gnu::always_inline]] RECKON_HOST_DEVICE inline float unit_interval(std::uint64_t bits) {
  return static_cast<float>(bits & 0xffffffu) * 0x1p-24f;
}

}  // namespace reckon::kernels
