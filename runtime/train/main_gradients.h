// The gradients that a rank accumulates over a step's micro-batches, in gradients.stored: of all its weights, or with
// ZeRO-2 and 3 of its shard. Block-scaled formats store every part of a unit on its own, so that a shard is whole
// blocks and ZeRO-0 and ZeRO-1 store the same bits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "plan/number_format.h"
#include "plan/parameter_layout.h"
#include "plan/plan.h"
#include "runtime/quant/quantize_place.h"
#include "runtime/train/device/torch_device.h"

namespace reckon {

class MainGradients {
 public:
  /// `accumulator` is the type in which ops make gradients, and where; `shard` this rank's place in its shard group.
  MainGradients(const Plan& plan, const ParameterLayout& layout, const at::TensorOptions& accumulator,
                std::int64_t shard);

  /// [padded_elements] or [shard_elements] in a plain format, bytes in a block-scaled one.
  const at::Tensor& buffer() const { return buffer_; }
  /// Only this rank's shard is there.
  bool is_shard() const { return is_shard_; }

  void clear();
  /// A new random sequence for stochastic rounding.
  void begin_step(std::int64_t step) { rounding_.seed = seed_ + (static_cast<std::uint64_t>(step) << 20); }

  /// Values of `range`, which is one or more whole parts of a unit, in accumulator precision: a view of the buffer
  /// where it has that format, else a copy.
  at::Tensor read(FlatRange range) const;
  /// values += what is stored.
  void add_to(FlatRange range, const at::Tensor& values) const;
  /// Rounds `values` into the buffer; nothing is done where they are the view that read() gave.
  void write(FlatRange range, const at::Tensor& values);
  /// stored += values, in accumulator precision with one rounding. `values` is used up.
  void add(FlatRange range, const at::Tensor& values);

 private:
  QuantizePlace place() const { return {device_stream(buffer_)}; }
  bool is_block_scaled() const { return !unit_bytes_.empty(); }
  /// Place of `range` in a plain buffer.
  at::Tensor stored(FlatRange range) const;
  /// visit(part of `range`, its bytes) for a block-scaled buffer.
  template <class Visit>
  void each_part(FlatRange range, Visit visit) const;

  const ParameterLayout& layout_;
  Storage storage_;
  at::ScalarType accumulator_;
  bool is_shard_;
  std::int64_t shard_;
  std::uint64_t seed_;
  QuantizeOptions rounding_;
  std::vector<std::int64_t> unit_bytes_;  // by unit: where its first stored part begins; only of block-scaled formats
  at::Tensor buffer_;
};

}  // namespace reckon
