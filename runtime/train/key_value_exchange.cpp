#include "runtime/train/key_value_exchange.h"

#include <ATen/ATen.h>

#include "runtime/train/kernels/device/elementwise.h"
#include "runtime/train/ops/copy_into.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

/// Rows of keys and values side by side, as a message carries them; returns what is filled.
at::Tensor packed(const std::vector<LocalRange>& ranges, std::int64_t first_row, const KeyValue& keys,
                  const at::Tensor& block) {
  const KeyValue target = halves(block);
  std::int64_t filled = 0;
  for (const LocalRange& range : ranges) {
    const KeyValue source = row_range(keys, first_row + range.first, range.count);
    copy_into(row_range(target.key, filled, range.count), source.key);
    copy_into(row_range(target.value, filled, range.count), source.value);
    filled += range.count;
  }
  return row_range(block, 0, filled);
}

/// Moves the rows of rising ranges to the front.
at::Tensor compacted(const std::vector<LocalRange>& ranges, const at::Tensor& block) {
  std::int64_t filled = 0;
  for (const LocalRange& range : ranges) {
    if (range.first != filled)
      for (std::int64_t row = 0; row < range.count; ++row)
        copy_into(row_range(block, filled + row, 1), row_range(block, range.first + row, 1));
    filled += range.count;
  }
  return row_range(block, 0, filled);
}

void add_into(const at::Tensor& target, const at::Tensor& source) {
  if (device_stream(target)) {  // one launch, not one a row
    at::Tensor(target).add_(source);
    return;
  }
  with_element_type(target, [&]<class T>(T, auto...) {
    for (std::int64_t row = 0; row < target.size(0); ++row)
      kernels::add<T>(pointer<T>(target) + row * target.stride(0), pointer<const T>(source) + row * source.stride(0),
                      target.size(1));
  });
}

}  // namespace

KeyValue row_range(const KeyValue& x, std::int64_t first, std::int64_t count) {
  return {row_range(x.key, first, count), row_range(x.value, first, count)};
}

KeyValue halves(const at::Tensor& block) {
  const std::int64_t half = block.size(1) / 2;
  return {block.narrow(1, 0, half), block.narrow(1, half, half)};
}

KeyValueExchange::KeyValueExchange(const std::vector<RowRound>& rounds, const KeyValue& keys, std::int64_t row_tokens,
                                   GroupCalls& ring)
    : rounds_(rounds), keys_(keys), row_tokens_(row_tokens), ring_(ring) {
  for (at::Tensor* block : {&receive_[0], &receive_[1], &send_})
    *block = at::empty({row_tokens, 2 * keys.key.size(1)}, keys.key.options());
}

void KeyValueExchange::start(std::size_t index) {
  const auto& [row, transfers, round] = rounds_[index];
  if (round->from >= 0)
    receiving_ = ring_.receive(row_range(receive_[index % 2], 0, round->received()), static_cast<int>(round->from));
  if (round->to < 0) return;
  const bool passes_on = transfers->mode == TransferMode::ring && round->distance > 1;
  const at::Tensor message = passes_on
                                 ? receive_[(index + 1) % 2]
                                 : packed(round->send, static_cast<std::int64_t>(row) * row_tokens_, keys_, send_);
  sending_ = ring_.send(message, static_cast<int>(round->to));
}

void KeyValueExchange::begin() {
  if (!rounds_.empty()) start(0);
}

KeyValue KeyValueExchange::arrived(std::size_t index) {
  receiving_.wait();
  sending_.wait();
  if (index + 1 < rounds_.size()) start(index + 1);
  return halves(receive_[index % 2]);
}

GradientReturn::GradientReturn(std::int64_t row_tokens, std::int64_t width, const at::TensorOptions& options,
                               GroupCalls& ring)
    : ring_(ring) {
  for (at::Tensor* block : {&rooms_[0], &rooms_[1], &receive_}) *block = at::empty({row_tokens, width}, options);
}

KeyValue GradientReturn::room(std::size_t index, std::int64_t tokens) {
  row_range(rooms_[index % 2], 0, tokens).zero_();
  return halves(rooms_[index % 2]);
}

void GradientReturn::exchange(std::size_t index, const RowRound& round, const KeyValue& own) {
  finish();
  own_ = own;
  round_ = round.round;
  if (const std::int64_t tokens = round_->gradients_received(); tokens > 0)
    receiving_ = ring_.receive(row_range(receive_, 0, tokens), static_cast<int>(round.transfers->borrower(*round_)));
  if (round_->gradients_sent() == 0) return;
  const at::Tensor& room = rooms_[index % 2];
  const at::Tensor message = round.transfers->mode == TransferMode::ring ? compacted(round_->needed, room)
                                                                         : row_range(room, 0, round_->gradients_sent());
  sending_ = ring_.send(message, static_cast<int>(round.transfers->owner(*round_)));
}

void GradientReturn::finish() {
  if (round_ == nullptr) return;
  receiving_.wait();
  sending_.wait();
  const KeyValue returned = halves(receive_);
  std::int64_t taken = 0;
  for (const LocalRange& range : round_->lent) {
    const KeyValue target = row_range(own_, range.first, range.count), source = row_range(returned, taken, range.count);
    add_into(target.key, source.key);
    add_into(target.value, source.value);
    taken += range.count;
  }
  round_ = nullptr;
}

}  // namespace reckon
