#include "runtime/train/kernels/cross_entropy.h"

#include <algorithm>
#include <limits>

namespace reckon::kernels {

template <class T>
RECKON_VECTOR_CLONES void softmax_statistics(const T* logits, Accumulator<T>* maximum, Accumulator<T>* sum,
                                             std::int64_t rows, std::int64_t width) {
  using A = Accumulator<T>;
  for (std::int64_t row = 0; row < rows; ++row, logits += width) {
    A largest = -std::numeric_limits<A>::infinity();
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < width; ++i) largest = load(logits[i]) > largest ? load(logits[i]) : largest;
    A total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < width; ++i) total += exponential(load(logits[i]) - largest);
    maximum[row] = largest;
    sum[row] = total;
  }
}

template <class T>
void target_logits(const T* logits, const std::int64_t* targets, Accumulator<T>* target_logit, std::int64_t rows,
                   std::int64_t width, std::int64_t first) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t column = targets[row] - first;
    target_logit[row] =
        targets[row] >= 0 && column >= 0 && column < width ? load(logits[row * width + column]) : Accumulator<T>(0);
  }
}

template <class T>
RECKON_VECTOR_CLONES void cross_entropy_gradient(T* logits, const std::int64_t* targets,
                                                 const Accumulator<T>* log_sum_exp, double scale, std::int64_t rows,
                                                 std::int64_t width, std::int64_t first) {
  using A = Accumulator<T>;
  for (std::int64_t row = 0; row < rows; ++row, logits += width) {
    const A factor = targets[row] < 0 ? A(0) : static_cast<A>(scale);
    const A normalizer = log_sum_exp[row];
    const std::int64_t column = targets[row] - first;
    const bool local = targets[row] >= 0 && column >= 0 && column < width;
    const A at_target = local ? (exponential(load(logits[column]) - normalizer) - A(1)) * factor : A(0);
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) store(logits[i], exponential(load(logits[i]) - normalizer) * factor);
    if (local) store(logits[column], at_target);
  }
}

#define RECKON_INSTANTIATE(T)                                                                                   \
  template void softmax_statistics<T>(const T*, Accumulator<T>*, Accumulator<T>*, std::int64_t, std::int64_t);  \
  template void target_logits<T>(const T*, const std::int64_t*, Accumulator<T>*, std::int64_t, std::int64_t,    \
                                 std::int64_t);                                                                 \
  template void cross_entropy_gradient<T>(T*, const std::int64_t*, const Accumulator<T>*, double, std::int64_t, \
                                          std::int64_t, std::int64_t)
RECKON_INSTANTIATE(float);
RECKON_INSTANTIATE(double);
RECKON_INSTANTIATE(BFloat16);

}  // namespace reckon::kernels
