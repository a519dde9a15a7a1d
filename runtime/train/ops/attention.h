// Causal attention of one micro-batch by libtorch's CPU flash kernel (grouped-query heads included).
#pragma once

#include <ATen/core/Tensor.h>

namespace reckon {

struct AttentionResult {
  at::Tensor output;       // [rows * length, heads * head_dim]
  at::Tensor log_sum_exp;  // [rows, heads, length] in accumulator precision, strided
};

/// query [rows * length, heads * head_dim], key and value [rows * length, kv_heads * head_dim], unit column stride.
AttentionResult attention_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                  std::int64_t rows, std::int64_t head_dim);

/// Fills the gradients, which have the shapes of query, key and value and may be parts of one buffer.
void attention_backward(const at::Tensor& output_gradient, const at::Tensor& query, const at::Tensor& key,
                        const at::Tensor& value, const AttentionResult& result, std::int64_t rows,
                        std::int64_t head_dim, const at::Tensor& query_gradient, const at::Tensor& key_gradient,
                        const at::Tensor& value_gradient);

}  // namespace reckon
