#include "runtime/train/kernels/norm.h"

namespace reckon::kernels {

template <class T>
RECKON_CPU_CLONES void rms_norm_forward(const T* x, const T* weight, T* y, Accumulator<T>* statistics,
                                        std::int64_t rows, std::int64_t width, double epsilon) {
  using A = Accumulator<T>;
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
    A squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < width; ++i) squares += load(x[i]) * load(x[i]);
    const A reciprocal = A(1) / std::sqrt(squares / static_cast<A>(width) + static_cast<A>(epsilon));
    statistics[row] = reciprocal;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) store(y[i], load(x[i]) * reciprocal * load(weight[i]));
  }
}

// With n = x * r: dweight = sum dy * n, and dx = r * (weight * dy - n * mean(weight * dy * n)).
template <class T>
RECKON_CPU_CLONES void rms_norm_backward(const T* dy, const T* x, const T* weight, const Accumulator<T>* statistics,
                                         T* dx, bool accumulate, Accumulator<T>* weight_gradient, std::int64_t rows,
                                         std::int64_t width) {
  using A = Accumulator<T>;
  for (std::int64_t row = 0; row < rows; ++row, x += width, dy += width, dx += width) {
    const A reciprocal = statistics[row];
    A dot = 0;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t i = 0; i < width; ++i) {
      const A product = load(dy[i]) * load(x[i]) * reciprocal;
      weight_gradient[i] += product;
      dot += product * load(weight[i]);
    }
    const A share = dot / static_cast<A>(width) * reciprocal;
    if (accumulate) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i)
        store(dx[i], load(dx[i]) + reciprocal * (load(weight[i]) * load(dy[i]) - load(x[i]) * share));
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i)
        store(dx[i], reciprocal * (load(weight[i]) * load(dy[i]) - load(x[i]) * share));
    }
  }
}

template <class T>
RECKON_CPU_CLONES void layer_norm_forward(const T* x, const T* weight, const T* bias, T* y, Accumulator<T>* statistics,
                                          std::int64_t rows, std::int64_t width, double epsilon) {
  using A = Accumulator<T>;
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
    A sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < width; ++i) sum += load(x[i]);
    const A mean = sum / static_cast<A>(width);
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < width; ++i) squares += (load(x[i]) - mean) * (load(x[i]) - mean);
    const A reciprocal = A(1) / std::sqrt(squares / static_cast<A>(width) + static_cast<A>(epsilon));
    statistics[2 * row] = mean;
    statistics[2 * row + 1] = reciprocal;
    if (bias != nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i)
        store(y[i], (load(x[i]) - mean) * reciprocal * load(weight[i]) + load(bias[i]));
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) store(y[i], (load(x[i]) - mean) * reciprocal * load(weight[i]));
    }
  }
}

// With n = (x - mean) * r and g = weight * dy: dx = r * (g - mean(g) - n * mean(g * n)).
template <class T>
RECKON_CPU_CLONES void layer_norm_backward(const T* dy, const T* x, const T* weight, const Accumulator<T>* statistics,
                                           T* dx, bool accumulate, Accumulator<T>* weight_gradient,
                                           Accumulator<T>* bias_gradient, std::int64_t rows, std::int64_t width) {
  using A = Accumulator<T>;
  for (std::int64_t row = 0; row < rows; ++row, x += width, dy += width, dx += width) {
    const A mean = statistics[2 * row], reciprocal = statistics[2 * row + 1];
    A sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (std::int64_t i = 0; i < width; ++i) {
      const A normed = (load(x[i]) - mean) * reciprocal, scaled = load(dy[i]) * load(weight[i]);
      weight_gradient[i] += load(dy[i]) * normed;
      sum += scaled;
      dot += scaled * normed;
    }
    if (bias_gradient != nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) bias_gradient[i] += load(dy[i]);
    }
    const A mean_scaled = sum / static_cast<A>(width), mean_dot = dot / static_cast<A>(width);
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const A normed = (load(x[i]) - mean) * reciprocal;
      const A gradient = reciprocal * (load(dy[i]) * load(weight[i]) - mean_scaled - normed * mean_dot);
      store(dx[i], accumulate ? load(dx[i]) + gradient : gradient);
    }
  }
}

#define RECKON_INSTANTIATE(T)                                                                                          \
  template void rms_norm_forward<T>(const T*, const T*, T*, Accumulator<T>*, std::int64_t, std::int64_t, double);      \
  template void rms_norm_backward<T>(const T*, const T*, const T*, const Accumulator<T>*, T*, bool, Accumulator<T>*,   \
                                     std::int64_t, std::int64_t);                                                      \
  template void layer_norm_forward<T>(const T*, const T*, const T*, T*, Accumulator<T>*, std::int64_t, std::int64_t,   \
                                      double);                                                                         \
  template void layer_norm_backward<T>(const T*, const T*, const T*, const Accumulator<T>*, T*, bool, Accumulator<T>*, \
                                       Accumulator<T>*, std::int64_t, std::int64_t)
RECKON_INSTANTIATE(float);
RECKON_INSTANTIATE(double);
RECKON_INSTANTIATE(BFloat16);

}  // namespace reckon::kernels
