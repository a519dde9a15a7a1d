// Cross-entropy of logits whose columns may be spread over a group (vocabulary parallel).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace reckon {

/// Reductions in place over the ranks that share the vocabulary; nothing to do on one rank.
struct VocabularyGroup {
  std::int64_t first_column = 0;
  std::int64_t columns = 0;  // local columns that are no padding; 0 = all
  std::function<void(const at::Tensor&)> maximum = [](const at::Tensor&) {};
  std::function<void(const at::Tensor&)> sum = [](const at::Tensor&) {};
};

/// logits [rows, local columns], targets [rows] int32, negative = padding. Fills log_sum_exp [rows] (accumulator
/// precision) and returns the sum of losses over the rows that have a target, the same on all ranks of the group. On a
/// device, where `device_sum` [1] fp64 is given, the sum is added to it and 0 returned: nothing waits for the device.
/// Temporaries: two accumulators a row.
double cross_entropy_forward(const at::Tensor& logits, const at::Tensor& targets, const VocabularyGroup& group,
                             const at::Tensor& log_sum_exp, const at::Tensor& device_sum = {});
/// logits becomes d(scale * sum of losses) / d(logits).
void cross_entropy_backward(const at::Tensor& logits, const at::Tensor& targets, const VocabularyGroup& group,
                            const at::Tensor& log_sum_exp, double scale);

}  // namespace reckon
