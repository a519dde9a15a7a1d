#include "runtime/train/kernels/rope.h"

namespace reckon::kernels {

template <class T>
RECKON_CPU_CLONES void rotate(T* rows_of_heads, std::int64_t rows, std::int64_t stride, std::int64_t heads,
                              std::int64_t head_dim, std::int64_t rotated, const std::int32_t* positions,
                              const Accumulator<T>* cosine, const Accumulator<T>* sine, int direction) {
  using A = Accumulator<T>;
  const std::int64_t half = rotated / 2;
  const A sign = static_cast<A>(direction);
  for (std::int64_t row = 0; row < rows; ++row) {
    const A* cos_row = cosine + positions[row] * half;
    const A* sin_row = sine + positions[row] * half;
    for (std::int64_t head = 0; head < heads; ++head) {
      T* first = rows_of_heads + row * stride + head * head_dim;
      T* second = first + half;
#pragma omp simd
      for (std::int64_t i = 0; i < half; ++i) {
        const A a = load(first[i]), b = load(second[i]), s = sign * sin_row[i];
        store(first[i], a * cos_row[i] - b * s);
        store(second[i], b * cos_row[i] + a * s);
      }
    }
  }
}

template void rotate<float>(float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                            const std::int32_t*, const float*, const float*, int);
template void rotate<double>(double*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                             const std::int32_t*, const double*, const double*, int);
template void rotate<BFloat16>(BFloat16*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                               const std::int32_t*, const float*, const float*, int);

}  // namespace reckon::kernels
