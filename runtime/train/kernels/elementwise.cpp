#include "runtime/train/kernels/elementwise.h"

#include <algorithm>

namespace reckon::kernels {

template <class T>
RECKON_CPU_CLONES void add(T* target, const T* source, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) store(target[i], load(target[i]) + load(source[i]));
}

template <class T>
RECKON_CPU_CLONES void accumulate(Accumulator<T>* main, const T* part, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) main[i] += load(part[i]);
}

template <class T>
RECKON_CPU_CLONES void add_bias(T* x, const T* bias, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, x += width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) store(x[i], load(x[i]) + load(bias[i]));
  }
}

template <class T>
RECKON_CPU_CLONES void bias_gradient(const T* dy, Accumulator<T>* gradient, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, dy += width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) gradient[i] += load(dy[i]);
  }
}

template <class T>
void gather_rows(const T* table, const std::int32_t* tokens, T* out, std::int64_t rows, std::int64_t width,
                 std::int64_t first, std::int64_t table_rows) {
  for (std::int64_t row = 0; row < rows; ++row, out += width) {
    const std::int64_t index = tokens[row] - first;
    if (index >= 0 && index < table_rows) std::copy_n(table + index * width, width, out);
    else std::fill_n(out, width, T{});
  }
}

template <class T>
RECKON_CPU_CLONES void scatter_rows(const T* dy, const std::int32_t* tokens, Accumulator<T>* gradient,
                                    std::int64_t rows, std::int64_t width, std::int64_t first,
                                    std::int64_t table_rows) {
  for (std::int64_t row = 0; row < rows; ++row, dy += width) {
    const std::int64_t index = tokens[row] - first;
    if (index < 0 || index >= table_rows) continue;
    Accumulator<T>* target = gradient + index * width;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) target[i] += load(dy[i]);
  }
}

template <class T>
void copy_rows(T* target, std::int64_t target_stride, const T* source, std::int64_t source_stride, std::int64_t rows,
               std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row)
    std::copy_n(source + row * source_stride, width, target + row * target_stride);
}

RECKON_CPU_CLONES void to_bfloat16(const float* source, BFloat16* target, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) store(target[i], source[i]);
}

RECKON_CPU_CLONES void to_float(const BFloat16* source, float* target, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) target[i] = load(source[i]);
}

#define RECKON_INSTANTIATE(T)                                                                               \
  template void add<T>(T*, const T*, std::int64_t);                                                         \
  template void accumulate<T>(Accumulator<T>*, const T*, std::int64_t);                                     \
  template void add_bias<T>(T*, const T*, std::int64_t, std::int64_t);                                      \
  template void bias_gradient<T>(const T*, Accumulator<T>*, std::int64_t, std::int64_t);                    \
  template void gather_rows<T>(const T*, const std::int32_t*, T*, std::int64_t, std::int64_t, std::int64_t, \
                               std::int64_t);                                                               \
  template void scatter_rows<T>(const T*, const std::int32_t*, Accumulator<T>*, std::int64_t, std::int64_t, \
                                std::int64_t, std::int64_t);                                                \
  template void copy_rows<T>(T*, std::int64_t, const T*, std::int64_t, std::int64_t, std::int64_t)
RECKON_INSTANTIATE(float);
RECKON_INSTANTIATE(double);
RECKON_INSTANTIATE(BFloat16);

}  // namespace reckon::kernels
