// Attention in parts: tasks (runs of queries against runs of keys, see ring_transfers.h) in any order, each folded into
// the result so far by its log-sum-exp (FlashAttention-2, arXiv 2307.08691; merging as in ring attention, 2310.01889).
// All sums are in accumulator precision. What a document's tasks compute depends on its own tokens only, to the bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "plan/ring_transfers.h"

namespace reckon {

/// The result for a run of tokens. A token without any key keeps output 0 and log-sum-exp -infinity.
struct AttentionState {
  at::Tensor output;       // [tokens, heads * head_dim]; in accumulator precision where several tasks share a query
  at::Tensor log_sum_exp;  // [heads, tokens], accumulator precision, dense
};

/// Sets every token to "has seen nothing".
void clear(const AttentionState& state);

/// Keys and values of a block of tokens: [tokens, kv_heads * head_dim], unit column stride.
struct KeyValue {
  at::Tensor key, value;
};

/// What backward needs beside them.
struct AttentionGradient {
  at::Tensor output;       // gradient of the output [tokens, heads * head_dim]
  at::Tensor log_sum_exp;  // [heads, tokens], of all tasks of the forward pass
  at::Tensor delta;        // [heads, tokens]: sum of gradient * output over each head, see attention_delta
  at::Tensor query;        // gradient of the queries, accumulator precision
};

/// Fills delta [heads, tokens].
void attention_delta(const at::Tensor& output_gradient, const at::Tensor& output, std::int64_t head_dim,
                     const at::Tensor& delta);

class TaskAttention {
 public:
  /// `compute` are the options of queries, keys and values. Allocates scratch of attention_scratch_elements() in their
  /// accumulator type.
  TaskAttention(std::int64_t head_dim, const at::TensorOptions& compute);

  /// query [tokens, heads * head_dim]. Adds the tasks' part to `state`.
  void forward(std::span<const AttentionTask> tasks, const at::Tensor& query, const KeyValue& block,
               const AttentionState& state);
  /// Adds the tasks' part to gradient.query and to `block_gradient` (accumulator precision).
  void backward(std::span<const AttentionTask> tasks, const at::Tensor& query, const KeyValue& block,
                const AttentionGradient& gradient, const KeyValue& block_gradient);

 private:
  struct Head;

  at::Tensor widened(const at::Tensor& source, std::int64_t head, std::int64_t first, std::int64_t count,
                     std::int64_t copy);
  void forward_run(const Head& head, const AttentionTask& task, std::int64_t first, std::int64_t count,
                   const AttentionState& state);
  void backward_run(const Head& head, const AttentionTask& task, std::int64_t first_key, std::int64_t keys,
                    const AttentionGradient& gradient, const KeyValue& block_gradient);

  std::int64_t head_dim_;
  bool widens_ = false;  // products are made of copies in accumulator precision
  at::Tensor scratch_;
};

}  // namespace reckon
