#include "runtime/train/ops/task_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/attention_scratch.h"
#include "runtime/train/kernels/device/attention_block.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

/// [count, head_dim] of one head, a view.
at::Tensor head_rows(const at::Tensor& x, std::int64_t head, std::int64_t head_dim, std::int64_t first,
                     std::int64_t count) {
  return x.as_strided({count, head_dim}, {x.stride(0), 1}, x.storage_offset() + first * x.stride(0) + head * head_dim);
}

template <class T>
T* element(const at::Tensor& x, std::int64_t row, std::int64_t column) {
  return pointer<T>(x) + row * x.stride(0) + column;
}

/// Calls run(A{}, place...) with the accumulator type of a tensor in it; see with_element_type.
template <class Run>
void with_accumulator(const at::Tensor& tensor, Run run) {
  with_element_type(tensor, [&]<class T>(T type, auto... place) {
    if constexpr (!std::is_same_v<T, kernels::BFloat16>) run(type, place...);
  });
}

/// Short runs waste less of a causal triangle, long ones are faster products.
std::int64_t query_run(std::int64_t queries) {
  return queries < 192 ? kAttentionQueries / 2 : kAttentionQueries;
}

}  // namespace

/// One query head of a task's block.
struct TaskAttention::Head {
  const at::Tensor& query;
  const KeyValue& block;
  std::int64_t head, key_head;
  double scale;
};

void clear(const AttentionState& state) {
  state.output.zero_();
  state.log_sum_exp.fill_(-std::numeric_limits<double>::infinity());
}

void attention_delta(const at::Tensor& output_gradient, const at::Tensor& output, std::int64_t head_dim,
                     const at::Tensor& delta) {
  with_element_type(output, [&]<class T>(T, auto... place) {
    kernels::row_products<T>(pointer<const T>(output_gradient), output_gradient.stride(0), pointer<const T>(output),
                             output.stride(0), output.size(0), output.size(1) / head_dim, head_dim,
                             pointer<kernels::Accumulator<T>>(delta), place...);
  });
}

TaskAttention::TaskAttention(std::int64_t head_dim, const at::TensorOptions& compute) : head_dim_(head_dim) {
  const at::ScalarType type = at::typeMetaToScalarType(compute.dtype()), wide = accumulator_type(type);
  widens_ = type != wide;
  scratch_ = at::empty({attention_scratch_elements(head_dim, widens_)}, compute.dtype(wide));
}

/// Rows of one head as they go into a product: a view, or a copy at `copy` of the scratch.
at::Tensor TaskAttention::widened(const at::Tensor& source, std::int64_t head, std::int64_t first, std::int64_t count,
                                  std::int64_t copy) {
  if (!widens_) return head_rows(source, head, head_dim_, first, count);
  with_element_type(source, [&]<class T>(T, auto... place) {
    if constexpr (std::is_same_v<T, kernels::BFloat16>)
      kernels::widen_rows<T>(element<const T>(source, first, head * head_dim_), source.stride(0),
                             pointer<float>(scratch_) + copy, count, head_dim_, place...);
  });
  return scratch_.as_strided({count, head_dim_}, {head_dim_, 1}, copy);
}

void TaskAttention::forward_run(const Head& head, const AttentionTask& task, std::int64_t first, std::int64_t count,
                                const AttentionState& state) {
  const AttentionPlaces places(head_dim_);
  const std::int64_t seen_by_last = std::min(task.keys, first + count + task.shift), row = task.query + first;
  const at::Tensor query = widened(head.query, head.head, row, count, places.query);
  const at::Tensor part = scratch_.as_strided({count, head_dim_}, {head_dim_, 1}, places.part);
  with_accumulator(scratch_, [&]<class A>(A, auto... place) {
    A* const maximum = pointer<A>(scratch_) + places.statistics;
    A *const sum = maximum + kAttentionQueries, *const rescale = sum + kAttentionQueries;
    if constexpr (sizeof...(place) == 0) {
      std::fill_n(maximum, count, -std::numeric_limits<A>::infinity());
      std::fill_n(sum, count, A(0));
    } else {
      scratch_.narrow(0, places.statistics, count).fill_(-std::numeric_limits<double>::infinity());
      scratch_.narrow(0, places.statistics + kAttentionQueries, count).zero_();
    }
    for (std::int64_t key = 0; key < seen_by_last; key += kAttentionKeys) {
      const std::int64_t keys = std::min(kAttentionKeys, seen_by_last - key);
      at::Tensor scores = scratch_.as_strided({count, keys}, {keys, 1}, places.scores);
      const at::Tensor k = widened(head.block.key, head.key_head, task.key + key, keys, places.key);
      at::mm_out(scores, query, k.t());
      kernels::softmax_block<A>(
          {pointer<A>(scores), count, keys, keys, first + task.shift + 1 - key, static_cast<A>(head.scale)}, maximum,
          sum, rescale, place...);
      const at::Tensor v = widened(head.block.value, head.key_head, task.key + key, keys, places.value);
      at::Tensor target = part;
      if (key == 0) {
        at::mm_out(target, scores, v);
      } else {
        kernels::scale_rows<A>(pointer<A>(part), count, head_dim_, rescale, place...);
        at::addmm_out(target, part, scores, v);
      }
    }
    const std::int64_t tokens = state.log_sum_exp.size(1);
    A* const log_sum_exp = pointer<A>(state.log_sum_exp) + head.head * tokens + row;
    with_element_type(state.output, [&]<class T>(T, auto...) {
      if constexpr (std::is_same_v<kernels::Accumulator<T>, A>)
        kernels::fold_rows<T>(element<T>(state.output, row, head.head * head_dim_), state.output.stride(0), log_sum_exp,
                              pointer<A>(part), count, head_dim_, maximum, sum, place...);
    });
  });
}

void TaskAttention::forward(std::span<const AttentionTask> tasks, const at::Tensor& query, const KeyValue& block,
                            const AttentionState& state) {
  const std::int64_t heads = query.size(1) / head_dim_, group = heads / (block.key.size(1) / head_dim_);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim_));
  for (const AttentionTask& task : tasks) {
    const std::int64_t run = query_run(task.queries);
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t first = 0; first < task.queries; first += run)
        forward_run({query, block, head, head / group, scale}, task, first, std::min(run, task.queries - first), state);
  }
}

void TaskAttention::backward_run(const Head& head, const AttentionTask& task, std::int64_t first_key, std::int64_t keys,
                                 const AttentionGradient& gradient, const KeyValue& block_gradient) {
  const AttentionPlaces places(head_dim_);
  const std::int64_t run = query_run(task.queries), tokens = gradient.log_sum_exp.size(1);
  const at::Tensor k = widened(head.block.key, head.key_head, task.key + first_key, keys, places.key);
  const at::Tensor v = widened(head.block.value, head.key_head, task.key + first_key, keys, places.value);
  at::Tensor key_gradient = head_rows(block_gradient.key, head.key_head, head_dim_, task.key + first_key, keys);
  at::Tensor value_gradient = head_rows(block_gradient.value, head.key_head, head_dim_, task.key + first_key, keys);
  const std::int64_t first_that_sees = std::max<std::int64_t>(0, first_key - task.shift);
  for (std::int64_t first = first_that_sees; first < task.queries; first += run) {
    const std::int64_t count = std::min(run, task.queries - first), row = task.query + first;
    const std::int64_t seen = std::min(keys, first + count + task.shift - first_key);
    const at::Tensor query = widened(head.query, head.head, row, count, places.query);
    const at::Tensor dy = widened(gradient.output, head.head, row, count, places.part);
    at::Tensor scores = scratch_.as_strided({count, seen}, {seen, 1}, places.scores);
    at::Tensor products = scratch_.as_strided({count, seen}, {seen, 1}, places.products);
    at::mm_out(scores, query, k.narrow(0, 0, seen).t());
    at::mm_out(products, dy, v.narrow(0, 0, seen).t());
    with_accumulator(scratch_, [&]<class A>(A, auto... place) {
      const std::int64_t first_of_run = head.head * tokens + row;
      kernels::score_gradients<A>(
          {pointer<A>(scores), count, seen, seen, first + task.shift + 1 - first_key, static_cast<A>(head.scale)},
          pointer<A>(products), pointer<A>(gradient.log_sum_exp) + first_of_run,
          pointer<A>(gradient.delta) + first_of_run, place...);
    });
    at::Tensor dk = key_gradient.narrow(0, 0, seen), dv = value_gradient.narrow(0, 0, seen);
    at::Tensor dq = head_rows(gradient.query, head.head, head_dim_, row, count);
    at::addmm_out(dv, dv, scores.t(), dy);
    at::addmm_out(dk, dk, products.t(), query);
    at::addmm_out(dq, dq, products, k.narrow(0, 0, seen));
  }
}

void TaskAttention::backward(std::span<const AttentionTask> tasks, const at::Tensor& query, const KeyValue& block,
                             const AttentionGradient& gradient, const KeyValue& block_gradient) {
  const std::int64_t heads = query.size(1) / head_dim_, group = heads / (block.key.size(1) / head_dim_);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim_));
  for (const AttentionTask& task : tasks)
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t key = 0; key < task.keys; key += kAttentionKeys)
        backward_run({query, block, head, head / group, scale}, task, key, std::min(kAttentionKeys, task.keys - key),
                     gradient, block_gradient);
}

}  // namespace reckon
