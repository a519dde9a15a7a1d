#include "runtime/train/kernels/optimizer_kernels.h"

#include <algorithm>

#include "runtime/train/kernels/optimizer_core.h"

namespace reckon::kernels {
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

RECKON_CPU_CLONES void adamw(const AdamwStep& step, float* weight, const NarrowMoments& moments, std::int64_t block,
                             std::uint64_t seed, const float* gradient, BFloat16* compute_weight, std::int64_t count) {
  const AdamwStep s = step;
  const float step_size = s.learning_rate / s.first_bias, root_bias = 1.0f / std::sqrt(s.second_bias);
  constexpr std::int64_t kLargestBlock = 2048;
  float first[kLargestBlock], root[kLargestBlock];
  for (std::int64_t start = 0, index = 0; start < count; start += block, ++index) {
    const std::int64_t width = std::min(block, count - start);
    const float first_scale = moments.first_scales[index], second_scale = moments.second_scales[index];
    float largest_first = 0, largest_root = 0;
#pragma omp simd reduction(max : largest_first, largest_root)
    for (std::int64_t i = 0; i < width; ++i) {
      float m = static_cast<float>(moments.first[start + i]) * first_scale;
      const float r = static_cast<float>(moments.second_root[start + i]) * second_scale;
      float v = r * r;
      weight[start + i] = adamw_element(s, step_size, root_bias, weight[start + i], m, v, gradient[start + i]);
      first[i] = m;
      root[i] = std::sqrt(v);
      largest_first = std::max(largest_first, std::fabs(m));
      largest_root = std::max(largest_root, root[i]);
    }
    moments.first_scales[index] = largest_first / 127.0f;
    moments.second_scales[index] = largest_root / 255.0f;
    const float to_first = largest_first > 0 ? 127.0f / largest_first : 0.0f;
    const float to_root = largest_root > 0 ? 255.0f / largest_root : 0.0f;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const std::uint64_t bits = mixed(seed + static_cast<std::uint64_t>(start + i));
      const float m = std::floor(first[i] * to_first + unit_interval(bits));
      const float r = std::floor(root[i] * to_root + unit_interval(bits >> 32));
      moments.first[start + i] = static_cast<std::int8_t>(std::clamp(m, -127.0f, 127.0f));
      moments.second_root[start + i] = static_cast<std::uint8_t>(std::clamp(r, root[i] > 0 ? 1.0f : 0.0f, 255.0f));
    }
    if (compute_weight != nullptr)
      for (std::int64_t i = 0; i < width; ++i) store(compute_weight[start + i], weight[start + i]);
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
