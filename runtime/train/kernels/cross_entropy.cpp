#include "runtime/train/kernels/cross_entropy.h"

#include <algorithm>
#include <limits>

namespace reckon::kernels {
namespace {

/// Local column of the row's target, or -1.
template <class T>
std::int64_t target_column(const LogitRows<T>& x, std::int64_t row) {
  const std::int64_t column = x.targets[row] - x.first;
  return x.targets[row] >= 0 && column >= 0 && column < x.width ? column : -1;
}

}  // namespace

template <class T>
RECKON_CPU_CLONES void row_maximum(const LogitRows<T>& x, Accumulator<T>* maximum) {
  using A = Accumulator<T>;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const T* logits = x.logits + row * x.stride;
    A largest = -std::numeric_limits<A>::infinity();
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < x.width; ++i) largest = load(logits[i]) > largest ? load(logits[i]) : largest;
    maximum[row] = largest;
  }
}

template <class T>
RECKON_CPU_CLONES void exponential_sum(const LogitRows<T>& x, const Accumulator<T>* maximum, Accumulator<T>* sum) {
  using A = Accumulator<T>;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const T* logits = x.logits + row * x.stride;
    const A largest = maximum[row];
    A total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < x.width; ++i) total += exponential(load(logits[i]) - largest);
    sum[row] = total;
  }
}

template <class T>
void target_logit(const LogitRows<T>& x, Accumulator<T>* target) {
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const std::int64_t column = target_column(x, row);
    target[row] = column >= 0 ? load(x.logits[row * x.stride + column]) : Accumulator<T>(0);
  }
}

template <class T>
RECKON_CPU_CLONES void cross_entropy_gradient(const LogitRows<T>& x, const Accumulator<T>* log_sum_exp, double scale) {
  using A = Accumulator<T>;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    T* logits = x.logits + row * x.stride;
    const A factor = x.targets[row] < 0 ? A(0) : static_cast<A>(scale);
    const A normalizer = log_sum_exp[row];
    const std::int64_t column = target_column(x, row);
    const A at_target = column >= 0 ? (exponential(load(logits[column]) - normalizer) - A(1)) * factor : A(0);
#pragma omp simd
    for (std::int64_t i = 0; i < x.width; ++i) store(logits[i], exponential(load(logits[i]) - normalizer) * factor);
    if (column >= 0) store(logits[column], at_target);
    std::fill(logits + x.width, logits + x.stride, T{});
  }
}

#define RECKON_INSTANTIATE(T)                                                                    \
  template void row_maximum<T>(const LogitRows<T>&, Accumulator<T>*);                            \
  template void exponential_sum<T>(const LogitRows<T>&, const Accumulator<T>*, Accumulator<T>*); \
  template void target_logit<T>(const LogitRows<T>&, Accumulator<T>*);                           \
  template void cross_entropy_gradient<T>(const LogitRows<T>&, const Accumulator<T>*, double)
RECKON_INSTANTIATE(float);
RECKON_INSTANTIATE(double);
RECKON_INSTANTIATE(BFloat16);

}  // namespace reckon::kernels
