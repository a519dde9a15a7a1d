#include "runtime/train/context_functions.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "runtime/train/kernels/device/attention_block.h"
#include "runtime/train/kernels/elementwise.h"
#include "runtime/train/key_value_exchange.h"
#include "runtime/train/ops/copy_into.h"
#include "runtime/train/ops/dispatch.h"
#include "runtime/train/ring_attention.h"

namespace reckon {
namespace {

/// Heads of this rank before the exchange, and of each Ulysses rank during attention. A key/value head goes to several
/// ranks where there are more of these than heads.
struct HeadSplit {
  std::int64_t ulysses, rows, tokens;               // own tokens of one row
  std::int64_t query_columns, key_columns;          // of one Ulysses rank
  std::int64_t all_query_columns, all_key_columns;  // of this rank

  explicit HeadSplit(const RankModel& model) {
    const LocalShape& s = model.shape;
    ulysses = s.ulysses;
    rows = model.batch_rows();
    tokens = s.tokens / rows;
    query_columns = s.heads / s.ulysses * s.head_dim;
    key_columns = std::max<std::int64_t>(1, s.kv_heads / s.ulysses) * s.head_dim;
    all_query_columns = s.heads * s.head_dim;
    all_key_columns = s.kv_heads * s.head_dim;
  }
  std::int64_t width() const { return query_columns + 2 * key_columns; }
  /// Ulysses ranks that hold the same key/value heads; they follow each other.
  std::int64_t replicas() const { return std::max<std::int64_t>(1, ulysses * key_columns / all_key_columns); }
  /// First key/value column of a Ulysses rank.
  std::int64_t first_key_column(std::int64_t rank) const { return rank / replicas() * key_columns; }
};

/// Runs `part(input, first column of the rank's own tensor, first column of the message, columns)` for queries, keys
/// and values.
template <class Part>
void for_query_key_value(const HeadSplit& split, std::int64_t rank, Part part) {
  part(0, rank * split.query_columns, 0, split.query_columns);
  part(1, split.first_key_column(rank), split.query_columns, split.key_columns);
  part(2, split.first_key_column(rank), split.query_columns + split.key_columns, split.key_columns);
}

/// The part of an exchange buffer [rows, ulysses ranks, tokens] that belongs to a row and rank.
at::Tensor message(const at::Tensor& buffer, const HeadSplit& split, std::int64_t row, std::int64_t rank) {
  return buffer.narrow(0, (row * split.ulysses + rank) * split.tokens, split.tokens);
}

/// target = sum of `parts` messages, of which `first` is the first; their rounding's rest lies `rest` columns behind.
void add_up(const at::Tensor& target, const at::Tensor& first, std::int64_t part_stride, std::int64_t parts,
            std::int64_t rest) {
  with_element_type(target, [&]<class T>(T, auto... place) {
    kernels::sum_parts<T>(pointer<T>(target), target.stride(0), pointer<const T>(first), first.stride(0), part_stride,
                          parts, rest, target.size(0), target.size(1), place...);
  });
}

/// One all-to-all for each row: what arrives lies in the row's order.
void exchange_rows(const OpCall& call, const HeadSplit& split, const at::Tensor& send, const at::Tensor& receive) {
  const std::int64_t run = split.ulysses * split.tokens;
  std::vector<TimedCall> calls;
  for (std::int64_t row = 0; row < split.rows; ++row)
    calls.push_back(call.model.ulysses->all_to_all(send.narrow(0, row * run, run), receive.narrow(0, row * run, run)));
  for (TimedCall& pending : calls) pending.wait();
}

}  // namespace

void scatter_heads_forward(OpCall& call) {
  const HeadSplit split(call.model);
  const std::int64_t all_tokens = split.rows * split.tokens * split.ulysses;
  const at::Tensor received = call.make_output(0, all_tokens, split.width());
  const at::Tensor sent = call.temporary(all_tokens, split.width());
  for (std::int64_t row = 0; row < split.rows; ++row)
    for (std::int64_t rank = 0; rank < split.ulysses; ++rank)
      for_query_key_value(split, rank, [&](std::size_t input, std::int64_t from, std::int64_t to, std::int64_t width) {
        copy_into(message(sent, split, row, rank).narrow(1, to, width),
                  call.input(input).narrow(0, row * split.tokens, split.tokens).narrow(1, from, width));
      });
  exchange_rows(call, split, sent, received);
  call.set_output(1, received.narrow(1, 0, split.query_columns));
  call.set_output(2, received.narrow(1, split.query_columns, split.key_columns));
  call.set_output(3, received.narrow(1, split.query_columns + split.key_columns, split.key_columns));
}

/// The gradient of a key/value head that went to several ranks is the sum of theirs. In narrow formats each of these
/// comes with what rounding has cut off, in columns behind all others.
void scatter_heads_backward(OpCall& call) {
  const HeadSplit split(call.model);
  const std::int64_t all_tokens = split.rows * split.tokens * split.ulysses;
  const at::Tensor gradient = call.output_gradient().view({all_tokens, -1});
  const std::int64_t width = gradient.size(1), rest = width - split.width();
  const std::int64_t columns[] = {split.all_query_columns, split.all_key_columns, split.all_key_columns};
  call.make_input_gradients(split.rows * split.tokens, columns);
  const at::Tensor received = call.temporary(all_tokens, width);
  exchange_rows(call, split, gradient, received);
  for (std::int64_t row = 0; row < split.rows; ++row)
    for (std::int64_t rank = 0; rank < split.ulysses; ++rank)
      for_query_key_value(split, rank, [&](std::size_t input, std::int64_t to, std::int64_t from, std::int64_t part) {
        const std::int64_t parts = input == 0 ? 1 : split.replicas();
        if (rank % parts != 0) return;
        add_up(call.input_gradient(input).narrow(0, row * split.tokens, split.tokens).narrow(1, to, part),
               message(received, split, row, rank).narrow(1, from, part), split.tokens * width, parts,
               input == 0 ? 0 : rest);
      });
}

void gather_heads_forward(OpCall& call) {
  const HeadSplit split(call.model);
  const at::Tensor output = call.make_output(0, split.rows * split.tokens, split.all_query_columns);
  const at::Tensor received = call.temporary(split.rows * split.tokens * split.ulysses, split.query_columns);
  exchange_rows(call, split, call.input(0), received);
  for (std::int64_t row = 0; row < split.rows; ++row)
    for (std::int64_t rank = 0; rank < split.ulysses; ++rank)
      copy_into(
          output.narrow(0, row * split.tokens, split.tokens).narrow(1, rank * split.query_columns, split.query_columns),
          message(received, split, row, rank));
}

void gather_heads_backward(OpCall& call) {
  const HeadSplit split(call.model);
  const std::int64_t all_tokens = split.rows * split.tokens * split.ulysses;
  const at::Tensor gradient = call.output_gradient().view({split.rows * split.tokens, split.all_query_columns});
  const at::Tensor received = call.temporary(all_tokens, split.query_columns);
  const at::Tensor sent = call.temporary(all_tokens, split.query_columns);
  for (std::int64_t row = 0; row < split.rows; ++row)
    for (std::int64_t rank = 0; rank < split.ulysses; ++rank)
      copy_into(message(sent, split, row, rank), gradient.narrow(0, row * split.tokens, split.tokens)
                                                     .narrow(1, rank * split.query_columns, split.query_columns));
  exchange_rows(call, split, sent, received);
  call.add_input_gradient(0, received);
}

void attention_forward_op(OpCall& call) {
  const at::Tensor query = call.input(0);
  const std::int64_t head_dim = call.model.shape.head_dim, heads = query.size(1) / head_dim;
  const std::int64_t rows = call.model.batch_rows(), tokens = query.size(0) / rows;
  const at::Tensor output = call.make_output(0, query.size(0), query.size(1));
  const at::Tensor log_sum_exp = call.make_output(1, rows * heads, tokens);
  RingAttention(call.batch.shares, head_dim, call.model.ring)
      .forward(query, {call.input(1), call.input(2)}, output, log_sum_exp);
  if (call.op.outputs.size() > 2) call.set_output(2, output);  // the projection's input under its own class
}

void attention_backward_op(OpCall& call) {
  const at::Tensor query = call.input_gradient_part(0), key = call.input_gradient_part(1),
                   value = call.input_gradient_part(2);
  RingAttention(call.batch.shares, call.model.shape.head_dim, call.model.ring)
      .backward(call.output_gradient(), call.input(0), {call.input(1), call.input(2)}, call.output(0), call.output(1),
                query, {key, value}, halves(call.input_gradient_rest(0)));
}

}  // namespace reckon
