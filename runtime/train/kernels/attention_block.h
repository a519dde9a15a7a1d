// The elementwise parts of attention over one block of scores, between the products (FlashAttention, arXiv 2205.14135
// and 2307.08691). Row i of a block sees its first `seen` + i columns, at most all and possibly none.
#pragma once

#include <cstdint>

#include "runtime/train/kernels/element.h"

namespace reckon::kernels {

/// Products of queries and keys, `stride` elements from row to row.
template <class A>
struct ScoreBlock {
  A* scores = nullptr;
  std::int64_t rows = 0, width = 0, stride = 0, seen = 0;
  A scale = 1;
};

/// scores -> e^(scale * score - maximum), 0 where nothing is seen. Raises the rows' running maximum and adds to their
/// running sum; rescale[row] is what results from before have to be multiplied by.
template <class A>
void softmax_block(const ScoreBlock<A>& block, A* maximum, A* sum, A* rescale);

/// x[row] *= factor[row]
template <class A>
void scale_rows(A* x, std::int64_t rows, std::int64_t width, const A* factor);

/// Adds attention over more keys to what a row has: `part` is the sum of e^(score - maximum) * value, `sum` that of the
/// exponentials. A row that has seen nothing yet has the log-sum-exp -infinity; its output is not read.
template <class T>
void fold_rows(T* output, std::int64_t stride, Accumulator<T>* log_sum_exp, const Accumulator<T>* part,
               std::int64_t rows, std::int64_t width, const Accumulator<T>* maximum, const Accumulator<T>* sum);

/// scores -> probabilities p = e^(scale * score - log_sum_exp); products (of output gradients and values) -> gradients
/// of the raw scores, p * (product - delta) * scale. Both blocks have the same strides.
template <class A>
void score_gradients(const ScoreBlock<A>& block, A* products, const A* log_sum_exp, const A* delta);

/// delta[head * rows + row] = sum over a head of gradient * output; rows lie the strides apart.
template <class T>
void row_products(const T* gradient, std::int64_t gradient_stride, const T* output, std::int64_t output_stride,
                  std::int64_t rows, std::int64_t heads, std::int64_t head_dim, Accumulator<T>* delta);

/// target[row] = sum over `parts` of source[row], parts `part_stride` elements apart; rounded once. With `rest` > 0
/// each part's number is that of `source` plus the one `rest` elements behind it (see cut_off_rows).
template <class T>
void sum_parts(T* target, std::int64_t target_stride, const T* source, std::int64_t source_stride,
               std::int64_t part_stride, std::int64_t parts, std::int64_t rest, std::int64_t rows, std::int64_t width);

/// rest[row] = source[row] - rounded[row]: with it a number has twice the bits of its type.
template <class T>
void cut_off_rows(const Accumulator<T>* source, std::int64_t source_stride, const T* rounded,
                  std::int64_t rounded_stride, T* rest, std::int64_t rest_stride, std::int64_t rows,
                  std::int64_t width);

/// target[row] = source[row] in the other precision.
template <class T>
void widen_rows(const T* source, std::int64_t stride, Accumulator<T>* target, std::int64_t rows, std::int64_t width);
template <class T>
void narrow_rows(const Accumulator<T>* source, std::int64_t source_stride, T* target, std::int64_t stride,
                 std::int64_t rows, std::int64_t width);

}  // namespace reckon::kernels
