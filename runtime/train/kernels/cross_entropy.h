// Softmax cross-entropy over rows of logits, in parts that a vocabulary-parallel loss can put collectives between: a
// rank holds columns [first, first + width) of every row; rows lie `stride` elements apart (columns from `width` on are
// padding of the table). Loss of a row = log(sum e^(x - max)) + max - x[target].
// Rows whose target is negative are padding: no loss, no gradient.
#pragma once

#include <cstdint>

#include "runtime/train/kernels/element.h"

namespace reckon::kernels {

template <class T>
struct LogitRows {
  T* logits = nullptr;
  const std::int32_t* targets = nullptr;
  std::int64_t rows = 0, width = 0, stride = 0;
  std::int64_t first = 0;
};

/// Maximum of each row's local columns.
template <class T>
void row_maximum(const LogitRows<T>& x, Accumulator<T>* maximum);

/// Sum of e^(x - maximum) over the local columns.
template <class T>
void exponential_sum(const LogitRows<T>& x, const Accumulator<T>* maximum, Accumulator<T>* sum);

/// x[target] of every row whose target is a local column, otherwise 0.
template <class T>
void target_logit(const LogitRows<T>& x, Accumulator<T>* target);

/// logits = (softmax - one_hot(target)) * scale in place, softmax from the row's log-sum-exp; 0 in padding.
template <class T>
void cross_entropy_gradient(const LogitRows<T>& x, const Accumulator<T>* log_sum_exp, double scale);

}  // namespace reckon::kernels
