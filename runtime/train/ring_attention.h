// Attention of one micro-batch on one rank: row after row, own keys first, then the rounds of the row's transfer plan
// (plan/ring_transfers.h). While one block is computed with, the next is on its way, also across rows; the buffers are
// of fixed size. Without a ring there are no rounds.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/row_share.h"
#include "runtime/train/ops/task_attention.h"
#include "runtime/train/rank_groups.h"

namespace reckon {

class RingAttention {
 public:
  using Rows = std::vector<std::shared_ptr<const RowShare>>;

  /// The rows and groups outlive it.
  RingAttention(const Rows& rows, std::int64_t head_dim, RingGroups ring)
      : rows_(rows), head_dim_(head_dim), ring_(ring) {}

  /// query [T, heads * head_dim], key and value [T, kv_heads * head_dim], unit column stride; T = rows * tokens of a
  /// row. Fills output [T, heads * head_dim] and log_sum_exp [rows * heads, tokens].
  void forward(const at::Tensor& query, const KeyValue& keys, const at::Tensor& output, const at::Tensor& log_sum_exp);

  /// Fills the gradients of queries, keys and values, which have their shapes, and, where `keys_rest` has columns, what
  /// rounding the latter two has cut off.
  void backward(const at::Tensor& output_gradient, const at::Tensor& query, const KeyValue& keys,
                const at::Tensor& output, const at::Tensor& log_sum_exp, const at::Tensor& query_gradient,
                const KeyValue& keys_gradient, const KeyValue& keys_rest);

 private:
  const Rows& rows_;
  std::int64_t head_dim_;
  RingGroups ring_;
};

}  // namespace reckon
