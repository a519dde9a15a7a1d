#include "runtime/train/ops/loss.h"

#include <ATen/ATen.h>

#include <cmath>

#include "runtime/train/kernels/cross_entropy.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

template <class T>
kernels::LogitRows<T> rows_of_logits(const at::Tensor& logits, const at::Tensor& targets,
                                     const VocabularyGroup& group) {
  const std::int64_t columns = group.columns > 0 ? group.columns : logits.size(1);
  return {pointer<T>(logits), pointer<std::int32_t>(targets), logits.size(0), columns, logits.stride(0),
          group.first_column};
}

}  // namespace

double cross_entropy_forward(const at::Tensor& logits, const at::Tensor& targets, const VocabularyGroup& group,
                             const at::Tensor& log_sum_exp) {
  const std::int64_t rows = logits.size(0);
  const at::Tensor sums = at::empty({2, rows}, log_sum_exp.options());  // of exponentials; of target logits
  return with_element_type(logits, [&]<class T>(T) {
    using A = kernels::Accumulator<T>;
    const auto x = rows_of_logits<T>(logits, targets, group);
    A* const result = pointer<A>(log_sum_exp);
    A* const exponentials = pointer<A>(sums);
    A* const target = exponentials + rows;
    kernels::row_maximum<T>(x, result);
    group.maximum(log_sum_exp);
    kernels::exponential_sum<T>(x, result, exponentials);
    kernels::target_logit<T>(x, target);
    group.sum(sums);
    double total = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      result[row] += std::log(exponentials[row]);
      if (x.targets[row] >= 0) total += static_cast<double>(result[row] - target[row]);
    }
    return total;
  });
}

void cross_entropy_backward(const at::Tensor& logits, const at::Tensor& targets, const VocabularyGroup& group,
                            const at::Tensor& log_sum_exp, double scale) {
  with_element_type(logits, [&]<class T>(T) {
    kernels::cross_entropy_gradient<T>(rows_of_logits<T>(logits, targets, group),
                                       pointer<kernels::Accumulator<T>>(log_sum_exp), scale);
  });
}

}  // namespace reckon
