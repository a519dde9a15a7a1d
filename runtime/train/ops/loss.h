// Cross-entropy of logits whose columns may be spread over a group (vocabulary parallel).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace reckon {

/// Reductions over the vocabulary group, in place on [rows] tensors; identity on one rank.
struct VocabularyGroup {
  std::int64_t first_column = 0;
  std::function<void(const at::Tensor&)> maximum = [](const at::Tensor&) {};
  std::function<void(const at::Tensor&)> sum = [](const at::Tensor&) {};
};

struct LossResult {
  double sum = 0;          // over rows with a target
  at::Tensor log_sum_exp;  // [rows], accumulator precision
};

/// logits [rows, local columns], targets [rows] int64, negative = padding.
LossResult cross_entropy_forward(const at::Tensor& logits, const at::Tensor& targets, const VocabularyGroup& group);
/// logits becomes d(scale * sum of losses) / d(logits).
void cross_entropy_backward(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& log_sum_exp,
                            double scale, std::int64_t first_column);

}  // namespace reckon
