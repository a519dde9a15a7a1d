// A run of blocks at a time: ranges give scales, values over their scales the codes, and the codes are packed.
#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "runtime/quant/block_kernels.h"
#include "runtime/quant/quantize.h"
#include "runtime/quant/with_format.h"

namespace reckon {
namespace {

using quant::ScaleType;

using Floats = std::array<float, kRun>;

/// Calls `action` with an object of the integer type that holds a scale's bits, little-endian.
template <class Action>
void with_scale_bits(ScaleType type, Action action) {
  switch (quant::scale_bytes(type)) {
    case 4: return action(std::uint32_t{});
    case 2: return action(std::uint16_t{});
    default: return action(std::uint8_t{});
  }
}

/// Entries [first, first + count) of a table of scales.
void store_scales(std::byte* table, ScaleType type, std::int64_t first, std::int64_t count, const std::uint32_t* bits) {
  with_scale_bits(type, [&](auto word) {
    for (std::int64_t i = 0; i < count; ++i) {
      word = static_cast<decltype(word)>(bits[i]);
      std::memcpy(table + (first + i) * static_cast<std::int64_t>(sizeof(word)), &word, sizeof(word));
    }
  });
}

/// What each byte stands for as an E4M3 scale.
const std::array<float, 256>& e4m3_scales() {
  static const std::array<float, 256> scales = [] {
    std::array<float, 256> all{};
    for (std::uint32_t bits = 0; bits < 256; ++bits) all[bits] = quant::decode_scale(ScaleType::e4m3, bits);
    return all;
  }();
  return scales;
}

void load_scales(const std::byte* table, ScaleType type, std::int64_t first, std::int64_t count, float factor,
                 float* scales) {
  if (type == ScaleType::e4m3) {
    const std::array<float, 256>& known = e4m3_scales();
    for (std::int64_t i = 0; i < count; ++i) scales[i] = known[static_cast<std::size_t>(table[first + i])] * factor;
    return;
  }
  with_scale_bits(type, [&](auto word) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(&word, table + (first + i) * static_cast<std::int64_t>(sizeof(word)), sizeof(word));
      scales[i] = quant::decode_scale(type, word) * factor;
    }
  });
}

void scales_of(const RunRanges& ranges, std::int64_t blocks, Storage storage, float factor, RunScales& scales) {
  const auto count = static_cast<std::size_t>(blocks);
  const ScaleType type = quant::scale_type(storage.scale);
  if (storage.format == NumberFormat::mxfp4) {
    for (std::size_t i = 0; i < count; ++i) scales.set(i, quant::microscaling_block_scale(ranges.of(i)));
    return;
  }
  quant::with_format(storage.format, [&](auto format) {
    using Format = decltype(format);
    if (!Format::kAffine && symmetric_scales(ranges, blocks, type, Format::kLargest, factor, scales)) return;
    for (std::size_t i = 0; i < count; ++i) scales.set(i, quant::block_scale<Format>(ranges.of(i), type, factor));
  });
}

/// A run of whole blocks of a tensor.
struct Run {
  std::int64_t first_block, blocks, start, count;  // blocks; elements
};

template <class Action>
void for_runs(const QuantizedLayout& layout, Storage storage, std::int64_t elements, Action action) {
  const std::int64_t step = kRun / storage.block;
  for (std::int64_t block = 0; block < layout.blocks; block += step) {
    const std::int64_t blocks = std::min(step, layout.blocks - block), start = block * storage.block;
    action(Run{block, blocks, start, std::min(blocks * storage.block, elements - start)});
  }
}

/// Values that lie side by side.
template <class Value>
struct Dense {
  std::span<const Value> values;

  std::int64_t elements() const { return static_cast<std::int64_t>(values.size()); }
  const Value* run(std::int64_t start, std::int64_t, Value*) const { return values.data() + start; }
  std::uint32_t largest() const { return largest_finite(values.data(), elements()); }
};

/// Rows apart: a run is copied together first.
template <class Value>
struct Rows {
  StridedRows<Value> from;

  std::int64_t elements() const { return from.rows * from.width; }
  const Value* run(std::int64_t start, std::int64_t count, Value* buffer) const {
    std::int64_t row = start / from.width, column = start % from.width;
    for (std::int64_t copied = 0; copied < count; ++row, column = 0) {
      const std::int64_t length = std::min(from.width - column, count - copied);
      std::copy_n(from.values + row * from.stride + column, length, buffer + copied);
      copied += length;
    }
    return buffer;
  }
  std::uint32_t largest() const {
    std::uint32_t largest = 0;
    for (std::int64_t row = 0; row < from.rows; ++row)
      largest = std::max(largest, largest_finite(from.values + row * from.stride, from.width));
    return largest;
  }
};

template <class Source>
float tensor_scale(const Source& source, Storage storage, std::byte* out) {
  if (storage.format != NumberFormat::nvfp4 || source.elements() == 0) return 1.0f;
  const float scale = quant::tensor_scale_of(quant::float_of(source.largest()));
  std::memcpy(out, &scale, sizeof(scale));
  return scale;
}

Storage checked(Storage storage, std::size_t elements, std::size_t bytes) {
  check_storage(storage);
  if (storage_bytes(storage, static_cast<std::int64_t>(elements)).value != static_cast<std::int64_t>(bytes))
    throw std::logic_error("a quantized tensor needs exactly its storage_bytes");
  return with_fixed_blocks(storage);
}

template <class Value, class Source>
void quantize_tensor(const Source& source, Storage requested, const QuantizeOptions& options,
                     std::span<std::byte> out) {
  const std::int64_t elements = source.elements();
  const Storage storage = checked(requested, static_cast<std::size_t>(elements), out.size());
  const QuantizedLayout layout = quantized_layout(storage, elements);
  const ScaleType type = quant::scale_type(storage.scale);
  const int bits = payload_bits(storage.format);
  const bool affine = is_affine(storage.format);
  const float factor = tensor_scale(source, storage, out.data() + layout.tensor_scale);
  std::array<std::uint8_t, kRun> codes;
  Floats scaled;
  std::array<Value, kRun> together;
  RunRanges ranges;
  RunScales scales;
  for_runs(layout, storage, elements, [&](const Run& run) {
    const Value* from = source.run(run.start, run.count, together.data());
    ranges_of(from, run.count, storage.block, affine, ranges);
    scales_of(ranges, run.blocks, storage, factor, scales);
    store_scales(out.data() + layout.scales, type, run.first_block, run.blocks, scales.scale_bits.data());
    if (affine)
      store_scales(out.data() + layout.minimums, type, run.first_block, run.blocks, scales.minimum_bits.data());
    const auto first = static_cast<std::uint64_t>(options.first_index + run.start);
    scale_run(from, run.count, storage.block, affine, scales, scaled.data());
    encode_run(storage.format, scaled.data(), run.count, {options.rounding, options.seed, first}, codes.data());
    pack_codes(bits, codes.data(), run.count, out.data() + layout.codes + run.start * bits / 8);
  });
}

/// Decodes run by run into `target` or, where that is null, into a buffer that `consume` gets.
template <class Consume>
void dequantize_tensor(std::span<const std::byte> bytes, Storage requested, std::size_t length, float* target,
                       Consume consume) {
  const Storage storage = checked(requested, length, bytes.size());
  const auto elements = static_cast<std::int64_t>(length);
  const QuantizedLayout layout = quantized_layout(storage, elements);
  const ScaleType type = quant::scale_type(storage.scale);
  const int bits = payload_bits(storage.format);
  const bool affine = is_affine(storage.format);
  float factor = 1.0f;
  if (storage.format == NumberFormat::nvfp4 && elements > 0)
    std::memcpy(&factor, bytes.data() + layout.tensor_scale, sizeof(factor));
  Floats buffer;
  std::array<float, kRunBlocks> scales, minimums;
  for_runs(layout, storage, elements, [&](const Run& run) {
    load_scales(bytes.data() + layout.scales, type, run.first_block, run.blocks, factor, scales.data());
    if (affine) load_scales(bytes.data() + layout.minimums, type, run.first_block, run.blocks, 1.0f, minimums.data());
    float* decoded = target != nullptr ? target + run.start : buffer.data();
    decode_run(storage.format, bytes.data() + layout.codes + run.start * bits / 8, run.count, storage.block,
               scales.data(), minimums.data(), decoded);
    consume(decoded, run.start, run.count);
  });
}

}  // namespace

void quantize(std::span<const float> values, Storage storage, const QuantizeOptions& options,
              std::span<std::byte> out) {
  quantize_tensor<float>(Dense<float>{values}, storage, options, out);
}

void quantize(std::span<const Bf16Bits> values, Storage storage, const QuantizeOptions& options,
              std::span<std::byte> out) {
  quantize_tensor<Bf16Bits>(Dense<Bf16Bits>{values}, storage, options, out);
}

void quantize(StridedRows<float> values, Storage storage, const QuantizeOptions& options, std::span<std::byte> out) {
  quantize_tensor<float>(Rows<float>{values}, storage, options, out);
}

void quantize(StridedRows<Bf16Bits> values, Storage storage, const QuantizeOptions& options, std::span<std::byte> out) {
  quantize_tensor<Bf16Bits>(Rows<Bf16Bits>{values}, storage, options, out);
}

void dequantize(std::span<const std::byte> bytes, Storage storage, std::span<float> values) {
  dequantize_tensor(bytes, storage, values.size(), values.data(), [](const float*, std::int64_t, std::int64_t) {});
}

void dequantize(std::span<const std::byte> bytes, Storage storage, std::span<Bf16Bits> values) {
  dequantize_tensor(bytes, storage, values.size(), nullptr,
                    [&](const float* decoded, std::int64_t start, std::int64_t count) {
                      narrow(decoded, count, values.data() + start);
                    });
}

void dequantize_add(std::span<const std::byte> bytes, Storage storage, std::span<float> sums) {
  dequantize_tensor(
      bytes, storage, sums.size(), nullptr,
      [&](const float* decoded, std::int64_t start, std::int64_t count) { add(decoded, count, sums.data() + start); });
}

}  // namespace reckon
