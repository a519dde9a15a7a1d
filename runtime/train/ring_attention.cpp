#include "runtime/train/ring_attention.h"

#include <ATen/ATen.h>

#include <optional>

#include "runtime/train/device/flash_attention.h"
#include "runtime/train/kernels/device/attention_block.h"
#include "runtime/train/key_value_exchange.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

std::vector<RowRound> rounds_of(const RingAttention::Rows& rows) {
  std::vector<RowRound> all;
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (const RingRound& round : rows[row]->transfers.rounds) all.push_back({row, &rows[row]->transfers, &round});
  return all;
}

/// source (accumulator precision) -> target.
void narrow_into(const at::Tensor& target, const at::Tensor& source) {
  with_element_type(target, [&]<class T>(T, auto... place) {
    kernels::narrow_rows<T>(pointer<const kernels::Accumulator<T>>(source), source.stride(0), pointer<T>(target),
                            target.stride(0), target.size(0), target.size(1), place...);
  });
}

/// rest = source (accumulator precision) - rounded.
void keep_rest(const at::Tensor& rest, const at::Tensor& source, const at::Tensor& rounded) {
  with_element_type(rest, [&]<class T>(T, auto... place) {
    kernels::cut_off_rows<T>(pointer<const kernels::Accumulator<T>>(source), source.stride(0),
                             pointer<const T>(rounded), rounded.stride(0), pointer<T>(rest), rest.stride(0),
                             rest.size(0), rest.size(1), place...);
  });
}

/// Sums of one row in accumulator precision: the tensors themselves where they have it, else a buffer used row by row.
class Sums {
 public:
  Sums(std::int64_t row_tokens, std::vector<at::Tensor> targets) : targets_(std::move(targets)) {
    const at::ScalarType type = accumulator_type(targets_.front().scalar_type());
    apart_ = type != targets_.front().scalar_type();
    std::int64_t width = 0;
    for (const at::Tensor& target : targets_) width += target.size(1);
    if (apart_) buffer_ = at::empty({row_tokens, width}, targets_.front().options().dtype(type));
    tokens_ = row_tokens;
  }
  /// Those of row `row`, zero.
  std::vector<at::Tensor> begin(std::int64_t row) {
    std::vector<at::Tensor> sums;
    std::int64_t first = 0;
    for (const at::Tensor& target : targets_) {
      sums.push_back(apart_ ? buffer_.narrow(1, first, target.size(1)) : row_range(target, row * tokens_, tokens_));
      sums.back().zero_();
      first += target.size(1);
    }
    return sums;
  }
  void end(std::int64_t row, const std::vector<at::Tensor>& sums) {
    for (std::size_t i = 0; apart_ && i < sums.size(); ++i)
      narrow_into(row_range(targets_[i], row * tokens_, tokens_), sums[i]);
  }

 private:
  std::vector<at::Tensor> targets_;
  at::Tensor buffer_;
  std::int64_t tokens_ = 0;
  bool apart_ = false;
};

}  // namespace

void RingAttention::forward(const at::Tensor& query, const KeyValue& keys, const at::Tensor& output,
                            const at::Tensor& log_sum_exp) {
  const auto rows = static_cast<std::int64_t>(rows_.size());
  const std::int64_t tokens = query.size(0) / rows, heads = query.size(1) / head_dim_;
  const std::vector<RowRound> rounds = rounds_of(rows_);
  TaskAttention attention(head_dim_, query.options());
  std::optional<KeyValueExchange> exchange;
  std::optional<Sums> sums;  // without a ring every query belongs to one task, whose result needs no more sums
  if (ring_.keys != nullptr) {
    exchange.emplace(rounds, keys, tokens, *ring_.keys).begin();
    sums.emplace(tokens, std::vector<at::Tensor>{output});
  }
  std::size_t next = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto part = [&](const at::Tensor& x) { return row_range(x, row * tokens, tokens); };
    const RingTransfers& transfers = rows_[static_cast<std::size_t>(row)]->transfers;
    const std::vector<at::Tensor> sum = sums ? sums->begin(row) : std::vector<at::Tensor>{part(output)};
    const AttentionState state{sum[0], row_range(log_sum_exp, row * heads, heads)};
    const KeyValue own = row_range(keys, row * tokens, tokens);
    if (transfers.rounds.empty() && flash_attention_forward(transfers.own, head_dim_, part(query), own, state)) {
      if (sums) sums->end(row, sum);
      continue;
    }
    clear(state);
    attention.forward(transfers.own, part(query), own, state);
    for (const RingRound& round : transfers.rounds)
      attention.forward(round.tasks, part(query), exchange->arrived(next++), state);
    if (sums) sums->end(row, sum);
  }
}

void RingAttention::backward(const at::Tensor& output_gradient, const at::Tensor& query, const KeyValue& keys,
                             const at::Tensor& output, const at::Tensor& log_sum_exp, const at::Tensor& query_gradient,
                             const KeyValue& keys_gradient, const KeyValue& keys_rest) {
  const auto rows = static_cast<std::int64_t>(rows_.size());
  const std::int64_t tokens = query.size(0) / rows, heads = query.size(1) / head_dim_;
  const std::vector<RowRound> rounds = rounds_of(rows_);
  TaskAttention attention(head_dim_, query.options());
  const at::Tensor delta = at::empty({heads, tokens}, log_sum_exp.options());
  Sums sums(tokens, {query_gradient, keys_gradient.key, keys_gradient.value});
  std::optional<KeyValueExchange> exchange;
  std::optional<GradientReturn> gradients;
  if (ring_.keys != nullptr) {
    exchange.emplace(rounds, keys, tokens, *ring_.keys).begin();
    gradients.emplace(tokens, 2 * keys.key.size(1), log_sum_exp.options(), *ring_.gradients);
  }
  std::size_t next = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto part = [&](const at::Tensor& x) { return row_range(x, row * tokens, tokens); };
    const RingTransfers& transfers = rows_[static_cast<std::size_t>(row)]->transfers;
    const std::vector<at::Tensor> sum = sums.begin(row);
    const AttentionGradient gradient{part(output_gradient), row_range(log_sum_exp, row * heads, heads), delta, sum[0]};
    const KeyValue own{sum[1], sum[2]}, block = row_range(keys, row * tokens, tokens);
    if (!transfers.rounds.empty() ||
        !flash_attention_backward(transfers.own, head_dim_, part(query), block, part(output), gradient, own)) {
      attention_delta(part(output_gradient), part(output), head_dim_, delta);
      attention.backward(transfers.own, part(query), block, gradient, own);
    }
    for (const RingRound& round : transfers.rounds) {
      const std::size_t index = next++;
      const KeyValue arrived = exchange->arrived(index), room = gradients->room(index, tokens);
      attention.backward(round.tasks, part(query), arrived, gradient, room);
      gradients->exchange(index, rounds[index], own);
    }
    if (gradients) gradients->finish();
    sums.end(row, sum);
    if (keys_rest.key.size(1) == 0) continue;
    keep_rest(part(keys_rest.key), sum[1], part(keys_gradient.key));
    keep_rest(part(keys_rest.value), sum[2], part(keys_gradient.value));
  }
}

}  // namespace reckon
