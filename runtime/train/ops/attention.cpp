#include "runtime/train/ops/attention.h"

#include <ATen/ATen.h>

#include "runtime/train/kernels/elementwise.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

/// [rows * length, heads * head_dim] -> [rows, heads, length, head_dim], a view.
at::Tensor by_head(const at::Tensor& x, std::int64_t rows, std::int64_t head_dim) {
  const std::int64_t length = x.size(0) / rows, stride = x.stride(0);
  return x.as_strided({rows, x.size(1) / head_dim, length, head_dim}, {length * stride, head_dim, stride, 1});
}

/// Copies [rows, heads, length, head_dim], dense in the order rows, length, heads, into a row-strided 2-D target.
void copy_by_token(const at::Tensor& source, const at::Tensor& target) {
  const at::Tensor by_token = source.transpose(1, 2).contiguous();
  with_element_type(target, [&]<class T>(T) {
    kernels::copy_rows<T>(pointer<T>(target), target.stride(0), pointer<T>(by_token), target.size(1), target.size(0),
                          target.size(1));
  });
}

}  // namespace

AttentionResult attention_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                  std::int64_t rows, std::int64_t head_dim) {
  auto [output, log_sum_exp] = at::_scaled_dot_product_flash_attention_for_cpu(
      by_head(query, rows, head_dim), by_head(key, rows, head_dim), by_head(value, rows, head_dim), /*dropout_p=*/0.0,
      /*is_causal=*/true);
  return {output.transpose(1, 2).contiguous().view({query.size(0), query.size(1)}), log_sum_exp};
}

void attention_backward(const at::Tensor& output_gradient, const at::Tensor& query, const at::Tensor& key,
                        const at::Tensor& value, const AttentionResult& result, std::int64_t rows,
                        std::int64_t head_dim, const at::Tensor& query_gradient, const at::Tensor& key_gradient,
                        const at::Tensor& value_gradient) {
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      by_head(output_gradient, rows, head_dim), by_head(query, rows, head_dim), by_head(key, rows, head_dim),
      by_head(value, rows, head_dim), by_head(result.output, rows, head_dim), result.log_sum_exp, /*dropout_p=*/0.0,
      /*is_causal=*/true);
  copy_by_token(dq, query_gradient);
  copy_by_token(dk, key_gradient);
  copy_by_token(dv, value_gradient);
}

}  // namespace reckon
