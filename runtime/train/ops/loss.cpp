#include "runtime/train/ops/loss.h"

#include <ATen/ATen.h>

#include <cmath>

#include "runtime/train/kernels/cross_entropy.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {

LossResult cross_entropy_forward(const at::Tensor& logits, const at::Tensor& targets, const VocabularyGroup& group) {
  const std::int64_t rows = logits.size(0), width = logits.size(1);
  const auto statistic = [&] { return at::empty({rows}, accumulator_type(logits.scalar_type())); };
  LossResult result{0.0, statistic()};
  return with_element_type(logits, [&]<class T>(T) {
    using A = kernels::Accumulator<T>;
    const at::Tensor maximum = statistic(), sum = result.log_sum_exp, target_logit = statistic();
    kernels::softmax_statistics<T>(pointer<T>(logits), pointer<A>(maximum), pointer<A>(sum), rows, width);
    const at::Tensor local_maximum = maximum.clone();
    group.maximum(maximum);
    A* const m = pointer<A>(maximum);
    A* const s = pointer<A>(sum);
    for (std::int64_t row = 0; row < rows; ++row) s[row] *= std::exp(pointer<A>(local_maximum)[row] - m[row]);
    group.sum(sum);
    kernels::target_logits<T>(pointer<T>(logits), pointer<std::int64_t>(targets), pointer<A>(target_logit), rows, width,
                              group.first_column);
    group.sum(target_logit);
    for (std::int64_t row = 0; row < rows; ++row) {
      s[row] = std::log(s[row]) + m[row];
      if (pointer<std::int64_t>(targets)[row] >= 0)
        result.sum += static_cast<double>(s[row] - pointer<A>(target_logit)[row]);
    }
    return result;
  });
}

void cross_entropy_backward(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& log_sum_exp,
                            double scale, std::int64_t first_column) {
  with_element_type(logits, [&]<class T>(T) {
    kernels::cross_entropy_gradient<T>(pointer<T>(logits), pointer<std::int64_t>(targets),
                                       pointer<kernels::Accumulator<T>>(log_sum_exp), scale, logits.size(0),
                                       logits.size(1), first_column);
  });
}

}  // namespace reckon
