#include "runtime/train/kernels/attention_block.h"

#include <algorithm>
#include <limits>

namespace reckon::kernels {
namespace {

template <class A>
std::int64_t seen_columns(const ScoreBlock<A>& block, std::int64_t row) {
  return std::clamp<std::int64_t>(block.seen + row, 0, block.width);
}

}  // namespace

template <class A>
RECKON_CPU_CLONES void softmax_block(const ScoreBlock<A>& block, A* maximum, A* sum, A* rescale) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    A* const scores = block.scores + row * block.stride;
    const std::int64_t seen = seen_columns(block, row);
    A largest = -std::numeric_limits<A>::infinity();
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < seen; ++i) largest = scores[i] > largest ? scores[i] : largest;
    const A before = maximum[row], now = seen > 0 ? std::max(before, block.scale * largest) : before;
    const A scale = block.scale;
    A total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < seen; ++i) {
      const A e = exponential(scale * scores[i] - now);
      scores[i] = e;
      total += e;
    }
    std::fill(scores + seen, scores + block.width, A(0));
    rescale[row] = before == now ? A(1) : exponential(before - now);
    sum[row] = sum[row] * rescale[row] + total;
    maximum[row] = now;
  }
}

template <class A>
RECKON_CPU_CLONES void scale_rows(A* x, std::int64_t rows, std::int64_t width, const A* factor) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const A f = factor[row];
    if (f == A(1)) continue;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) x[row * width + i] *= f;
  }
}

template <class T>
RECKON_CPU_CLONES void fold_rows(T* output, std::int64_t stride, Accumulator<T>* log_sum_exp,
                                 const Accumulator<T>* part, std::int64_t rows, std::int64_t width,
                                 const Accumulator<T>* maximum, const Accumulator<T>* sum) {
  using A = Accumulator<T>;
  for (std::int64_t row = 0; row < rows; ++row) {
    T* const target = output + row * stride;
    const A* const source = part + row * width;
    const A before = log_sum_exp[row], added = maximum[row] + std::log(sum[row]);
    if (before == -std::numeric_limits<A>::infinity()) {
      const A factor = A(1) / sum[row];
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) store(target[i], source[i] * factor);
      log_sum_exp[row] = added;
      continue;
    }
    const A after = std::max(before, added) + std::log1p(std::exp(-std::abs(before - added)));
    const A keep = std::exp(before - after), take = std::exp(added - after) / sum[row];
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) store(target[i], load(target[i]) * keep + source[i] * take);
    log_sum_exp[row] = after;
  }
}

template <class A>
RECKON_CPU_CLONES void score_gradients(const ScoreBlock<A>& block, A* products, const A* log_sum_exp, const A* delta) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    A* const scores = block.scores + row * block.stride;
    A* const gradients = products + row * block.stride;
    const std::int64_t seen = seen_columns(block, row);
    const A scale = block.scale, normalizer = log_sum_exp[row], mean = delta[row];
#pragma omp simd
    for (std::int64_t i = 0; i < seen; ++i) {
      const A p = exponential(scale * scores[i] - normalizer);
      scores[i] = p;
      gradients[i] = p * (gradients[i] - mean) * scale;
    }
    std::fill(scores + seen, scores + block.width, A(0));
    std::fill(gradients + seen, gradients + block.width, A(0));
  }
}

template <class T>
RECKON_CPU_CLONES void row_products(const T* gradient, std::int64_t gradient_stride, const T* output,
                                    std::int64_t output_stride, std::int64_t rows, std::int64_t heads,
                                    std::int64_t head_dim, Accumulator<T>* delta) {
  using A = Accumulator<T>;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t head = 0; head < heads; ++head) {
      const T* const g = gradient + row * gradient_stride + head * head_dim;
      const T* const o = output + row * output_stride + head * head_dim;
      A total = 0;
#pragma omp simd reduction(+ : total)
      for (std::int64_t i = 0; i < head_dim; ++i) total += load(g[i]) * load(o[i]);
      delta[head * rows + row] = total;
    }
}

template <class T>
RECKON_CPU_CLONES void sum_parts(T* target, std::int64_t target_stride, const T* source, std::int64_t source_stride,
                                 std::int64_t part_stride, std::int64_t parts, std::int64_t rest, std::int64_t rows,
                                 std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const T* const first = source + row * source_stride + i;
      Accumulator<T> sum = load(*first);
      for (std::int64_t part = 1; part < parts; ++part) sum += load(first[part * part_stride]);
      for (std::int64_t part = 0; rest > 0 && part < parts; ++part) sum += load(first[part * part_stride + rest]);
      store(target[row * target_stride + i], sum);
    }
  }
}

template <class T>
RECKON_CPU_CLONES void cut_off_rows(const Accumulator<T>* source, std::int64_t source_stride, const T* rounded,
                                    std::int64_t rounded_stride, T* rest, std::int64_t rest_stride, std::int64_t rows,
                                    std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      store(rest[row * rest_stride + i], source[row * source_stride + i] - load(rounded[row * rounded_stride + i]));
  }
}

template <class T>
RECKON_CPU_CLONES void widen_rows(const T* source, std::int64_t stride, Accumulator<T>* target, std::int64_t rows,
                                  std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) target[row * width + i] = load(source[row * stride + i]);
  }
}

template <class T>
RECKON_CPU_CLONES void narrow_rows(const Accumulator<T>* source, std::int64_t source_stride, T* target,
                                   std::int64_t stride, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) store(target[row * stride + i], source[row * source_stride + i]);
  }
}

#define RECKON_INSTANTIATE_FOR_ACCUMULATOR(A)                            \
  template void softmax_block<A>(const ScoreBlock<A>&, A*, A*, A*);      \
  template void scale_rows<A>(A*, std::int64_t, std::int64_t, const A*); \
  template void score_gradients<A>(const ScoreBlock<A>&, A*, const A*, const A*)
RECKON_INSTANTIATE_FOR_ACCUMULATOR(float);
RECKON_INSTANTIATE_FOR_ACCUMULATOR(double);

#define RECKON_INSTANTIATE(T)                                                                                      \
  template void fold_rows<T>(T*, std::int64_t, Accumulator<T>*, const Accumulator<T>*, std::int64_t, std::int64_t, \
                             const Accumulator<T>*, const Accumulator<T>*);                                        \
  template void row_products<T>(const T*, std::int64_t, const T*, std::int64_t, std::int64_t, std::int64_t,        \
                                std::int64_t, Accumulator<T>*);                                                    \
  template void sum_parts<T>(T*, std::int64_t, const T*, std::int64_t, std::int64_t, std::int64_t, std::int64_t,   \
                             std::int64_t, std::int64_t);                                                          \
  template void cut_off_rows<T>(const Accumulator<T>*, std::int64_t, const T*, std::int64_t, T*, std::int64_t,     \
                                std::int64_t, std::int64_t);                                                       \
  template void widen_rows<T>(const T*, std::int64_t, Accumulator<T>*, std::int64_t, std::int64_t);                \
  template void narrow_rows<T>(const Accumulator<T>*, std::int64_t, T*, std::int64_t, std::int64_t, std::int64_t)
RECKON_INSTANTIATE(float);
RECKON_INSTANTIATE(double);
RECKON_INSTANTIATE(BFloat16);

}  // namespace reckon::kernels
