#include "runtime/train/ops/loss.h"

#include <ATen/ATen.h>

#include <cmath>

#include "runtime/train/kernels/device/cross_entropy.h"
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
                             const at::Tensor& log_sum_exp, const at::Tensor& device_sum) {
  const std::int64_t rows = logits.size(0);
  const at::Tensor sums = at::empty({2, rows}, log_sum_exp.options());  // of exponentials; of target logits
  return with_element_type(logits, [&]<class T>(T, auto... place) {
    using A = kernels::Accumulator<T>;
    const auto x = rows_of_logits<T>(logits, targets, group);
    A* const result = pointer<A>(log_sum_exp);
    A* const exponentials = pointer<A>(sums);
    A* const target = exponentials + rows;
    kernels::row_maximum<T>(x, result, place...);
    group.maximum(log_sum_exp);
    kernels::exponential_sum<T>(x, result, exponentials, place...);
    kernels::target_logit<T>(x, target, place...);
    group.sum(sums);
    double total = 0;
    if constexpr (sizeof...(place) == 0) {
      for (std::int64_t row = 0; row < rows; ++row) {
        result[row] += std::log(exponentials[row]);
        if (x.targets[row] >= 0) total += static_cast<double>(result[row] - target[row]);
      }
    } else {
      kernels::finish_loss<T>(x, result, exponentials, target, place...);
      const at::Tensor sum = sums[1].sum(at::kDouble);
      if (!device_sum.defined()) return sum.item<double>();
      at::Tensor(device_sum).add_(sum);
    }
    return total;
  });
}

void cross_entropy_backward(const at::Tensor& logits, const at::Tensor& targets, const VocabularyGroup& group,
                            const at::Tensor& log_sum_exp, double scale) {
  with_element_type(logits, [&]<class T>(T, auto... place) {
    kernels::cross_entropy_gradient<T>(rows_of_logits<T>(logits, targets, group),
                                       pointer<kernels::Accumulator<T>>(log_sum_exp), scale, place...);
  });
}

}  // namespace reckon
