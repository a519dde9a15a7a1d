// Element types of the kernels and the few functions that gcc must be able to vectorise over them, the same lines on
// host and device. CPU kernels are plain loops, compiled once per instruction set level by RECKON_CPU_CLONES (see
// cmake/cpu_clones.cmake); the loader picks the best one (ifunc), so that the build needs no -march=native. Sums are
// `omp simd` reductions, because -fassociative-math would break exponential(). All arithmetic is in Accumulator<T>:
// float for float and BFloat16, double for double.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "runtime/device/host_device.h"

namespace reckon::kernels {

/// Bits of a bfloat16, layout-compatible with c10::BFloat16.
struct BFloat16 {
  std::uint16_t bits;
};

template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

[[gnu::always_inline]] RECKON_HOST_DEVICE inline float load(BFloat16 value) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
}
[[gnu::always_inline]] RECKON_HOST_DEVICE inline float load(float value) {
  return value;
}
[[gnu::always_inline]] RECKON_HOST_DEVICE inline double load(double value) {
  return value;
}

/// Rounds to nearest even; a NaN stays a NaN.
[[gnu::always_inline]] RECKON_HOST_DEVICE inline void store(BFloat16& target, float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  target.bits = static_cast<std::uint16_t>(value != value ? 0x7FC0u : rounded);
}
[[gnu::always_inline]] RECKON_HOST_DEVICE inline void store(float& target, float value) {
  target = value;
}
[[gnu::always_inline]] RECKON_HOST_DEVICE inline void store(double& target, double value) {
  target = value;
}

/// e^x with a relative error below 2e-7; 0 below -87.3, clamped above 88.3, NaN for NaN. Cody-Waite reduction by ln 2
/// in two parts and the degree-7 polynomial of the Cephes library (expf).
[[gnu::always_inline]] RECKON_HOST_DEVICE inline float exponential(float x) {
  const float clamped = x > 88.3f ? 88.3f : (x < -87.3f ? -87.3f : x);
  const float n = std::floor(clamped * 1.44269504f + 0.5f);
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r * r + r) + 1.0f;
  const float result = p * __builtin_bit_cast(float, (static_cast<std::int32_t>(n) + 127) << 23);
  return x < -87.3f ? 0.0f : (x != x ? x : result);
}
[[gnu::always_inline]] RECKON_HOST_DEVICE inline double exponential(double x) {
  return std::exp(x);
}

/// 1 / (1 + e^-x)
template <class A>
[[gnu::always_inline]] RECKON_HOST_DEVICE inline A sigmoid(A x) {
  return A(1) / (A(1) + exponential(-x));
}

/// tanh(x) = 2 sigmoid(2x) - 1
template <class A>
[[gnu::always_inline]] RECKON_HOST_DEVICE inline A hyperbolic_tangent(A x) {
  return A(2) * sigmoid(A(2) * x) - A(1);
}

}  // namespace reckon::kernels
