#include "runtime/train/kernels/optimizer_kernels.h"

#include <algorithm>

namespace reckon::kernels {
namespace {

/// New weight of one element; moments are updated in place.
[[gnu::always_inline]] inline float adamw_element(const AdamwStep& s, float step_size, float root_bias, float weight,
                                                  float& first, float& second, float raw_gradient) {
  const float gradient = raw_gradient * s.gradient_scale;
  first += (gradient - first) * (1.0f - s.beta1);
  second = second * s.beta2 + gradient * gradient * (1.0f - s.beta2);
  const float decayed = weight - s.learning_rate * s.weight_decay * weight;
  return decayed - step_size * first / (std::sqrt(second) * root_bias + s.epsilon);
}

}  // namespace

RECKON_CPU_CLONES void adamw(const AdamwStep& step, float* weight, float* first_moment, float* second_moment,
                             const float* gradient, std::int64_t count) {
  const AdamwStep s = step;
  const float step_size = s.learning_rate / s.first_bias, root_bias = 1.0f / std::sqrt(s.second_bias);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    weight[i] = adamw_element(s, step_size, root_bias, weight[i], first_moment[i], second_moment[i], gradient[i]);
}

RECKON_CPU_CLONES void adamw(const AdamwStep& step, float* weight, float* first_moment, float* second_moment,
                             const float* gradient, BFloat16* compute_weight, std::int64_t count) {
  const AdamwStep s = step;
  const float step_size = s.learning_rate / s.first_bias, root_bias = 1.0f / std::sqrt(s.second_bias);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    weight[i] = adamw_element(s, step_size, root_bias, weight[i], first_moment[i], second_moment[i], gradient[i]);
    store(compute_weight[i], weight[i]);
  }
}

RECKON_CPU_CLONES void sgd(float learning_rate, float weight_decay, float gradient_scale, float* weight,
                           const float* gradient, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    weight[i] -= learning_rate * (gradient[i] * gradient_scale + weight_decay * weight[i]);
}

template <class T>
RECKON_CPU_CLONES double sum_of_squares(const T* values, std::int64_t count) {
  double total = 0;
  for (std::int64_t start = 0; start < count; start += 4096) {
    const std::int64_t end = std::min(count, start + 4096);
    T block = 0;
#pragma omp simd reduction(+ : block)
    for (std::int64_t i = start; i < end; ++i) block += values[i] * values[i];
    total += static_cast<double>(block);
  }
  return total;
}
template double sum_of_squares<float>(const float*, std::int64_t);
template double sum_of_squares<double>(const double*, std::int64_t);

}  // namespace reckon::kernels
