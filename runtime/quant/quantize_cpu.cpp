// A run of blocks at a time: ranges give scales, scales the codes, and the codes are packed.
#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "runtime/quant/block_kernels.h"
#include "runtime/quant/quantize.h"
#include "runtime/quant/with_format.h"

namespace reckon {
namespace {

using quant::BlockRange;
using quant::BlockScale;
using quant::ScaleType;

using Codes = std::array<std::uint8_t, kRun + kCodePadding>;
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

/// Entries [first, first + count) of a table of scales; `bits_at(i)` gives entry first + i.
template <class BitsAt>
void store_scales(std::byte* table, ScaleType type, std::int64_t first, std::int64_t count, BitsAt bits_at) {
  with_scale_bits(type, [&](auto word) {
    for (std::int64_t i = 0; i < count; ++i) {
      word = static_cast<decltype(word)>(bits_at(static_cast<std::size_t>(i)));
      std::memcpy(table + (first + i) * static_cast<std::int64_t>(sizeof(word)), &word, sizeof(word));
    }
  });
}

void load_scales(const std::byte* table, ScaleType type, std::int64_t first, std::int64_t count, float factor,
                 float* scales) {
  with_scale_bits(type, [&](auto word) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(&word, table + (first + i) * static_cast<std::int64_t>(sizeof(word)), sizeof(word));
      scales[i] = quant::decode_scale(type, word) * factor;
    }
  });
}

void scales_of(const BlockRange* ranges, std::int64_t blocks, Storage storage, float factor, BlockScale* scales) {
  if (storage.format == NumberFormat::mxfp4) {
    for (std::int64_t i = 0; i < blocks; ++i) scales[i] = quant::microscaling_block_scale(ranges[i]);
    return;
  }
  quant::with_format(storage.format, [&](auto format) {
    for (std::int64_t i = 0; i < blocks; ++i)
      scales[i] = quant::block_scale<decltype(format)>(ranges[i], quant::scale_type(storage.scale), factor);
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

template <class Value>
float tensor_scale(const Value* values, Storage storage, std::int64_t elements, std::byte* out) {
  if (storage.format != NumberFormat::nvfp4 || elements == 0) return 1.0f;
  const float scale = quant::tensor_scale_of(quant::float_of(largest_finite(values, elements)));
  std::memcpy(out, &scale, sizeof(scale));
  return scale;
}

Storage checked(Storage storage, std::size_t elements, std::size_t bytes) {
  check_storage(storage);
  if (storage_bytes(storage, static_cast<std::int64_t>(elements)).value != static_cast<std::int64_t>(bytes))
    throw std::logic_error("a quantized tensor needs exactly its storage_bytes");
  return with_fixed_blocks(storage);
}

template <class Value>
void quantize_tensor(std::span<const Value> values, Storage requested, const QuantizeOptions& options,
                     std::span<std::byte> out) {
  const Storage storage = checked(requested, values.size(), out.size());
  const auto elements = static_cast<std::int64_t>(values.size());
  const QuantizedLayout layout = quantized_layout(storage, elements);
  const ScaleType type = quant::scale_type(storage.scale);
  const int bits = payload_bits(storage.format);
  const bool affine = is_affine(storage.format);
  const float factor = tensor_scale(values.data(), storage, elements, out.data() + layout.tensor_scale);
  Codes codes;
  std::array<BlockRange, kRunBlocks> ranges;
  std::array<BlockScale, kRunBlocks> scales;
  for_runs(layout, storage, elements, [&](const Run& run) {
    const Value* from = values.data() + run.start;
    ranges_of(from, run.count, storage.block, affine, ranges.data());
    scales_of(ranges.data(), run.blocks, storage, factor, scales.data());
    store_scales(out.data() + layout.scales, type, run.first_block, run.blocks,
                 [&](std::size_t i) { return scales[i].scale_bits; });
    if (affine)
      store_scales(out.data() + layout.minimums, type, run.first_block, run.blocks,
                   [&](std::size_t i) { return scales[i].minimum_bits; });
    const auto first = static_cast<std::uint64_t>(options.first_index + run.start);
    encode_run(storage.format, from, run.count, storage.block, scales.data(), {options.rounding, options.seed, first},
               codes.data());
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
  Codes codes;
  Floats buffer;
  std::array<float, kRunBlocks> scales, minimums;
  for_runs(layout, storage, elements, [&](const Run& run) {
    load_scales(bytes.data() + layout.scales, type, run.first_block, run.blocks, factor, scales.data());
    if (affine) load_scales(bytes.data() + layout.minimums, type, run.first_block, run.blocks, 1.0f, minimums.data());
    unpack_codes(bits, bytes.data() + layout.codes + run.start * bits / 8, run.count, codes.data());
    float* decoded = target != nullptr ? target + run.start : buffer.data();
    decode_run(storage.format, codes.data(), run.count, storage.block, scales.data(), minimums.data(), decoded);
    consume(decoded, run.start, run.count);
  });
}

}  // namespace

void quantize(std::span<const float> values, Storage storage, const QuantizeOptions& options,
              std::span<std::byte> out) {
  quantize_tensor(values, storage, options, out);
}

void quantize(std::span<const Bf16Bits> values, Storage storage, const QuantizeOptions& options,
              std::span<std::byte> out) {
  quantize_tensor(values, storage, options, out);
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
