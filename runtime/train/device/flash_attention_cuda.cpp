#include "runtime/train/device/flash_attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "runtime/train/device/flash_documents.h"

namespace reckon {
namespace {

bool takes(const at::Tensor& query, std::int64_t head_dim) {
  return query.is_cuda() && (query.scalar_type() == at::kBFloat16 || query.scalar_type() == at::kHalf) &&
         head_dim <= 256 && head_dim % 8 == 0;
}

/// [tokens, heads * head_dim] -> [tokens, heads, head_dim], a view.
at::Tensor by_head(const at::Tensor& x, std::int64_t head_dim) {
  return x.unflatten(1, {x.size(1) / head_dim, head_dim});
}

at::Tensor on_device_of(const at::Tensor& tensor, const std::vector<std::int32_t>& numbers) {
  return at::tensor(numbers, at::kInt).pin_memory().to(tensor.device(), at::kInt, /*non_blocking=*/true);
}

double scale_of(std::int64_t head_dim) {
  return 1.0 / std::sqrt(static_cast<double>(head_dim));
}

}  // namespace

bool flash_attention_forward(std::span<const AttentionTask> tasks, std::int64_t head_dim, const at::Tensor& query,
                             const KeyValue& block, const AttentionState& state) {
  if (!takes(query, head_dim)) return false;
  const auto borders = flash_borders(tasks, query.size(0));
  if (!borders) return false;
  const at::Tensor starts = on_device_of(query, borders->starts);
  // ... dropout, causal, debug mask, scale. Log-sum-exps come as [heads, tokens] (since flash-attention 2.6).
  const auto result = at::_flash_attention_forward(by_head(query, head_dim), by_head(block.key, head_dim),
                                                   by_head(block.value, head_dim), starts, starts, borders->longest,
                                                   borders->longest, 0.0, true, false, scale_of(head_dim));
  at::Tensor(state.output).copy_(std::get<0>(result).flatten(1));
  at::Tensor(state.log_sum_exp).copy_(std::get<1>(result));
  return true;
}

bool flash_attention_backward(std::span<const AttentionTask> tasks, std::int64_t head_dim, const at::Tensor& query,
                              const KeyValue& block, const at::Tensor& output, const AttentionGradient& gradient,
                              const KeyValue& block_gradient) {
  if (!takes(query, head_dim)) return false;
  const auto borders = flash_borders(tasks, query.size(0));
  if (!borders) return false;
  const at::Tensor starts = on_device_of(query, borders->starts);
  const at::Tensor no_random_state = at::zeros({2}, starts.options().dtype(at::kLong));  // read with dropout only
  const auto gradients = at::_flash_attention_backward(
      by_head(gradient.output, head_dim), by_head(query, head_dim), by_head(block.key, head_dim),
      by_head(block.value, head_dim), by_head(output, head_dim), gradient.log_sum_exp, starts, starts, borders->longest,
      borders->longest, 0.0, true, no_random_state, no_random_state, scale_of(head_dim));
  at::Tensor(gradient.query).copy_(std::get<0>(gradients).flatten(1));
  at::Tensor(block_gradient.key).copy_(std::get<1>(gradients).flatten(1));
  at::Tensor(block_gradient.value).copy_(std::get<2>(gradients).flatten(1));
  return true;
}

}  // namespace reckon
