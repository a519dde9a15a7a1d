// Attention of one row by libtorch's flash kernels (arXiv 2307.08691), all its documents in one call. The one place
// that knows their arguments. A build without CUDA has flash_attention_absent.cpp, which takes nothing.
#pragma once

#include <span>

#include "runtime/train/ops/task_attention.h"

namespace reckon {

/// Fills `state` with the tasks' attention and returns true, if the kernels take it: half-width numbers on a GPU, heads
/// of at most 256 elements (a multiple of 8), and tasks that are whole documents, one after the other, over all tokens.
/// Otherwise returns false and leaves everything as it is. Arguments as TaskAttention::forward's.
bool flash_attention_forward(std::span<const AttentionTask> tasks, std::int64_t head_dim, const at::Tensor& query,
                             const KeyValue& block, const AttentionState& state);

/// The same for the gradients. `output` [tokens, heads * head_dim] is the forward pass's; queries', keys' and values'
/// gradients are written to `query_gradient` and `block_gradient`, in any precision.
bool flash_attention_backward(std::span<const AttentionTask> tasks, std::int64_t head_dim, const at::Tensor& query,
                              const KeyValue& block, const at::Tensor& output, const AttentionGradient& gradient,
                              const KeyValue& block_gradient);

}  // namespace reckon
