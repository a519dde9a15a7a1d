#include "runtime/train/main_gradients.h"

#include <ATen/ATen.h>

#include <span>
#include <stdexcept>

#include "runtime/train/kernels/device/elementwise.h"
#include "runtime/train/memory_account.h"
#include "runtime/train/ops/dispatch.h"
#include "runtime/train/rank_model.h"

namespace reckon {

MainGradients::MainGradients(const Plan& plan, const ParameterLayout& layout, const at::TensorOptions& accumulator,
                             std::int64_t shard)
    : layout_(layout),
      storage_(with_fixed_blocks({plan.gradients.stored, plan.activations.block, plan.activations.scale})),
      accumulator_(at::typeMetaToScalarType(accumulator.dtype())),
      is_shard_(plan.parallel.zero >= 2 && layout.shards > 1),
      shard_(shard),
      seed_(plan.train.seed),
      rounding_{plan.gradients.rounding, seed_, 0} {
  const CategoryScope scope(MemoryCategory::gradients);
  const std::int64_t elements = is_shard_ ? layout.shard_elements : layout.padded_elements;
  if (!reckon::is_block_scaled(storage_.format)) {
    const bool as_made = storage_.format == NumberFormat::fp32;  // or fp64 where ops compute in it
    buffer_ = at::zeros({elements}, accumulator.dtype(as_made ? accumulator_ : scalar_type(storage_.format)));
    return;
  }
  check_storage(storage_);
  std::int64_t bytes = 0;
  for (const FlatRange& unit : layout.units) {
    unit_bytes_.push_back(bytes);
    bytes += storage_bytes(storage_, unit.count / layout.parts).value * layout.parts / (is_shard_ ? layout.shards : 1);
  }
  buffer_ = at::zeros({bytes}, accumulator.dtype(at::kByte));
}

/// Zero bytes decode to zeros in every format: codes of zero under scales of zero.
void MainGradients::clear() {
  buffer_.zero_();
}

at::Tensor MainGradients::stored(FlatRange range) const {
  if (!is_shard_) return buffer_.narrow(0, range.first, range.count);
  const FlatRange& unit = layout_.units[layout_.unit_of(range.first)];
  const FlatRange own = layout_.shard_of(unit, shard_);
  if (range.first < own.first || range.end() > own.end())
    throw std::logic_error("gradients of another rank's shard are asked for");
  return buffer_.narrow(0, unit.first / layout_.shards + range.first - own.first, range.count);
}

template <class Visit>
void MainGradients::each_part(FlatRange range, Visit visit) const {
  const std::size_t index = layout_.unit_of(range.first);
  const FlatRange& unit = layout_.units[index];
  const std::int64_t part = unit.count / layout_.parts, bytes = storage_bytes(storage_, part).value;
  if ((range.first - unit.first) % part != 0 || range.count % part != 0)
    throw std::logic_error("block-scaled gradients are read and written in whole parts");
  auto* base = reinterpret_cast<std::byte*>(buffer_.mutable_data_ptr<std::uint8_t>()) + unit_bytes_[index];
  const std::int64_t held = is_shard_ ? layout_.shard_of(unit, shard_).first : unit.first;
  for (std::int64_t first = range.first; first < range.end(); first += part) {
    const std::int64_t number = (first - held) / part;
    visit(FlatRange{first - range.first, part}, first,
          std::span(base + number * bytes, static_cast<std::size_t>(bytes)));
  }
}

namespace {

/// main (fp32) += part
void accumulate_bfloat16(const at::Tensor& main, const at::Tensor& part) {
  with_element_type(part, [&]<class T>(T, auto... place) {
    if constexpr (std::is_same_v<T, kernels::BFloat16>)
      kernels::accumulate<T>(pointer<float>(main), pointer<const T>(part), part.numel(), place...);
  });
}

std::span<float> floats(const at::Tensor& tensor, FlatRange part) {
  return {pointer<float>(tensor) + part.first, static_cast<std::size_t>(part.count)};
}

}  // namespace

at::Tensor MainGradients::read(FlatRange range) const {
  if (!is_block_scaled()) return stored(range).to(accumulator_);
  const at::Tensor values = at::empty({range.count}, buffer_.options().dtype(at::kFloat));
  each_part(range, [&](FlatRange part, std::int64_t, std::span<std::byte> bytes) {
    place().dequantize(bytes, storage_, floats(values, part));
  });
  return values;
}

void MainGradients::add_to(FlatRange range, const at::Tensor& values) const {
  if (!is_block_scaled()) {
    const at::Tensor part = stored(range);
    if (part.scalar_type() == at::kBFloat16) accumulate_bfloat16(values, part);
    else at::Tensor(values).add_(part);
    return;
  }
  each_part(range, [&](FlatRange part, std::int64_t, std::span<std::byte> bytes) {
    place().dequantize_add(bytes, storage_, floats(values, part));
  });
}

void MainGradients::write(FlatRange range, const at::Tensor& values) {
  if (!is_block_scaled()) {
    const at::Tensor target = stored(range);
    if (target.data_ptr() != values.data_ptr()) target.copy_(values);
    return;
  }
  const at::Tensor wide = values.to(accumulator_);
  each_part(range, [&](FlatRange part, std::int64_t first, std::span<std::byte> bytes) {
    QuantizeOptions options = rounding_;
    options.first_index = first;
    place().quantize(std::span<const float>(floats(wide, part)), storage_, options, bytes);
  });
}

void MainGradients::add(FlatRange range, const at::Tensor& values) {
  if (!is_block_scaled() && buffer_.scalar_type() == accumulator_) {
    const at::Tensor target = stored(range);
    if (values.scalar_type() == at::kBFloat16) accumulate_bfloat16(target, values);
    else target.add_(values);
    return;
  }
  ++rounding_.seed;  // numbers of its own for every micro-batch; by place alone in a step's last sum, whoever rounds it
  const at::Tensor sum = values.to(accumulator_);
  add_to(range, sum);
  write(range, sum);
}

}  // namespace reckon
