// The messages of ring attention: blocks of keys and values round by round, and in backward their gradients to the
// owners. A block is [tokens, keys | values].
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "plan/row_share.h"
#include "runtime/train/group_calls.h"
#include "runtime/train/ops/task_attention.h"

namespace reckon {

/// One round of one row of the micro-batch.
struct RowRound {
  std::size_t row = 0;
  const RingTransfers* transfers = nullptr;
  const RingRound* round = nullptr;
};

/// Rows [first, first + count) of a tensor.
inline at::Tensor row_range(const at::Tensor& x, std::int64_t first, std::int64_t count) {
  return x.narrow(0, first, count);
}
KeyValue row_range(const KeyValue& x, std::int64_t first, std::int64_t count);
/// The halves of a block.
KeyValue halves(const at::Tensor& block);

/// Passes keys and values on. All ranks of the ring go through their rounds in the same order, and a rank waits only
/// for calls of earlier rounds before it starts one: so no rank can wait for itself in a circle.
class KeyValueExchange {
 public:
  /// `keys` of all rows, `row_tokens` each.
  KeyValueExchange(const std::vector<RowRound>& rounds, const KeyValue& keys, std::int64_t row_tokens,
                   GroupCalls& ring);

  /// Starts the first round.
  void begin();
  /// Waits for round `index`, starts the next one, and returns the block that has arrived.
  KeyValue arrived(std::size_t index);

 private:
  void start(std::size_t index);

  const std::vector<RowRound>& rounds_;
  const KeyValue& keys_;
  std::int64_t row_tokens_;
  GroupCalls& ring_;
  at::Tensor receive_[2], send_;  // blocks of a row's tokens
  TimedCall receiving_, sending_;
};

/// Returns gradients to their owners and adds what comes back to the own gradients.
class GradientReturn {
 public:
  /// `width` elements a token, in accumulator precision.
  GradientReturn(std::int64_t row_tokens, std::int64_t width, const at::TensorOptions& options, GroupCalls& ring);

  /// Zeroed room for the gradients of the block that round `index` computes with.
  KeyValue room(std::size_t index, std::int64_t tokens);
  /// Sends the gradients of that room and receives those of `own`, the gradients of the row's own keys and values.
  void exchange(std::size_t index, const RowRound& round, const KeyValue& own);
  /// Waits for the last exchange. To be called before `own` of another row, or the result, is used.
  void finish();

 private:
  at::Tensor rooms_[2], receive_;
  GroupCalls& ring_;
  KeyValue own_;  // of the exchange under way
  const RingRound* round_ = nullptr;
  TimedCall receiving_, sending_;
};

}  // namespace reckon
