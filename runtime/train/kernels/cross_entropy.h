// Softmax cross-entropy over rows of logits, in parts that a vocabulary-parallel loss can put collectives between: a
// rank holds columns [first, first + width) of every row. Loss of a row = log(sum e^(x - max)) + max - x[target]. Rows
// whose target is negative are padding: no loss, no gradient.
#pragma once

#include <cstdint>

#include "runtime/train/kernels/element.h"

namespace reckon::kernels {

/// The row's maximum over the local columns, and sum of e^(x - maximum).
template <class T>
void softmax_statistics(const T* logits, Accumulator<T>* maximum, Accumulator<T>* sum, std::int64_t rows,
                        std::int64_t width);

/// x[target] of every row whose target is a local column, otherwise 0.
template <class T>
void target_logits(const T* logits, const std::int64_t* targets, Accumulator<T>* target_logit, std::int64_t rows,
                   std::int64_t width, std::int64_t first);

/// logits = (softmax - one_hot(target)) * scale in place, softmax from the row's log-sum-exp; 0 in padding rows.
template <class T>
void cross_entropy_gradient(T* logits, const std::int64_t* targets, const Accumulator<T>* log_sum_exp, double scale,
                            std::int64_t rows, std::int64_t width, std::int64_t first);

}  // namespace reckon::kernels
