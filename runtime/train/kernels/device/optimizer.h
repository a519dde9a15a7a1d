// optimizer_kernels.h for a device: one launch over a flat slice of weights.
#pragma once

#include "runtime/train/kernels/device/launch.h"
#include "runtime/train/kernels/optimizer_core.h"

namespace reckon::kernels {

struct AdamwKernel {
  AdamwStep step;
  float step_size, root_bias;
  float *weight, *first_moment, *second_moment;
  const float* gradient;
  BFloat16* compute_weight;  // may be null
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    weight[i] = adamw_element(step, step_size, root_bias, weight[i], first_moment[i], second_moment[i], gradient[i]);
    if (compute_weight != nullptr) store(compute_weight[i], weight[i]);
  }
};

struct SgdKernel {
  float learning_rate, weight_decay, gradient_scale;
  float* weight;
  const float* gradient;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    weight[i] -= learning_rate * (gradient[i] * gradient_scale + weight_decay * weight[i]);
  }
};

/// A row is a block of moments. Its codes are read twice, the second time to write the new ones: a lane writes what it
/// alone reads, and the old scales, which all read, are known before.
struct NarrowAdamwKernel {
  AdamwStep step;
  float step_size, root_bias;
  float* weight;
  NarrowMoments moments;
  std::int64_t width;  // elements of a block
  std::uint64_t seed;
  const float* gradient;
  BFloat16* compute_weight;  // may be null
  std::int64_t count;

  static RECKON_HOST_DEVICE Found<float> nothing() { return {0.0f, 0.0f}; }
  static RECKON_HOST_DEVICE Found<float> join(Found<float> a, Found<float> b) {
    return {a.first < b.first ? b.first : a.first, a.second < b.second ? b.second : a.second};
  }
  /// The new weight, and the moments before they are rounded.
  RECKON_HOST_DEVICE float updated(Found<float> scales, std::int64_t i, float& first, float& root) const {
    first = static_cast<float>(moments.first[i]) * scales.first;
    const float old_root = static_cast<float>(moments.second_root[i]) * scales.second;
    float second = old_root * old_root;
    const float result = adamw_element(step, step_size, root_bias, weight[i], first, second, gradient[i]);
    root = std::sqrt(second);
    return result;
  }
  RECKON_HOST_DEVICE Found<float> begin(std::int64_t row) const {
    return {moments.first_scales[row], moments.second_scales[row]};
  }
  RECKON_HOST_DEVICE void visit(Found<float> scales, std::int64_t row, std::int64_t column, Found<float>& found) const {
    const std::int64_t i = row * width + column;
    if (i >= count) return;
    float first, root;
    updated(scales, i, first, root);
    found = join(found, {std::fabs(first), root});
  }
  RECKON_HOST_DEVICE void finish(Found<float> scales, std::int64_t row, Found<float> largest, int lane) const {
    if (lane == 0) {
      moments.first_scales[row] = largest.first / 127.0f;
      moments.second_scales[row] = largest.second / 255.0f;
    }
    const float to_first = largest.first > 0 ? 127.0f / largest.first : 0.0f;
    const float to_root = largest.second > 0 ? 255.0f / largest.second : 0.0f;
    for (std::int64_t i = row * width + lane; i < (row + 1) * width && i < count; i += kLanes) {
      float first, root;
      weight[i] = updated(scales, i, first, root);
      const std::uint64_t bits = mixed(seed + static_cast<std::uint64_t>(i));
      const float m = std::floor(first * to_first + unit_interval(bits));
      const float r = std::floor(root * to_root + unit_interval(bits >> 32)), least = root > 0 ? 1.0f : 0.0f;
      moments.first[i] = static_cast<std::int8_t>(m < -127.0f ? -127.0f : m > 127.0f ? 127.0f : m);
      moments.second_root[i] = static_cast<std::uint8_t>(r < least ? least : r > 255.0f ? 255.0f : r);
      if (compute_weight != nullptr) store(compute_weight[i], weight[i]);
    }
  }
};

/// Row = block of `width` values.
template <class T>
struct SumOfSquaresKernel {
  const T* values;
  std::int64_t width, count;
  double* sums;
  static RECKON_HOST_DEVICE Found<T> nothing() { return {T(0), T(0)}; }
  static RECKON_HOST_DEVICE Found<T> join(Found<T> a, Found<T> b) { return {a.first + b.first, T(0)}; }
  RECKON_HOST_DEVICE NoContext begin(std::int64_t) const { return {}; }
  RECKON_HOST_DEVICE void visit(NoContext, std::int64_t row, std::int64_t column, Found<T>& found) const {
    const std::int64_t i = row * width + column;
    if (i < count) found.first += values[i] * values[i];
  }
  RECKON_HOST_DEVICE void finish(NoContext, std::int64_t row, Found<T> found, int lane) const {
    if (lane == 0) sums[row] = static_cast<double>(found.first);
  }
};

inline void adamw(const AdamwStep& step, float* weight, float* first_moment, float* second_moment,
                  const float* gradient, BFloat16* compute_weight, std::int64_t count, DeviceStream stream) {
  launch(AdamwKernel{step, step.learning_rate / step.first_bias, 1.0f / std::sqrt(step.second_bias), weight,
                     first_moment, second_moment, gradient, compute_weight},
         count, stream);
}

inline void adamw(const AdamwStep& step, float* weight, float* first_moment, float* second_moment,
                  const float* gradient, std::int64_t count, DeviceStream stream) {
  adamw(step, weight, first_moment, second_moment, gradient, nullptr, count, stream);
}

inline void adamw(const AdamwStep& step, float* weight, const NarrowMoments& moments, std::int64_t block,
                  std::uint64_t seed, const float* gradient, BFloat16* compute_weight, std::int64_t count,
                  DeviceStream stream) {
  launch_rows(NarrowAdamwKernel{step, step.learning_rate / step.first_bias, 1.0f / std::sqrt(step.second_bias), weight,
                                moments, block, seed, gradient, compute_weight, count},
              (count + block - 1) / block, stream);
}

inline void sgd(float learning_rate, float weight_decay, float gradient_scale, float* weight, const float* gradient,
                std::int64_t count, DeviceStream stream) {
  launch(SgdKernel{learning_rate, weight_decay, gradient_scale, weight, gradient}, count, stream);
}

constexpr std::int64_t kSquaresBlock = 4096;  // as on the CPU

/// sums [count / kSquaresBlock, rounded up]: of each block's squares, in double.
template <class T>
void sums_of_squares(const T* values, std::int64_t count, double* sums, DeviceStream stream) {
  launch_rows(SumOfSquaresKernel<T>{values, kSquaresBlock, count, sums}, (count + kSquaresBlock - 1) / kSquaresBlock,
              stream);
}

}  // namespace reckon::kernels
