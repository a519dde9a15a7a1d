// One block at a time: its range gives the scale, the scale the codes, and the codes are packed.
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

using Codes = std::array<std::uint8_t, kLargestBlock + kCodePadding>;
using Floats = std::array<float, kLargestBlock>;

/// The block as FP32: itself, or widened into `buffer`.
const float* as_floats(const float* values, std::int64_t, Floats&) {
  return values;
}
const float* as_floats(const Bf16Bits* values, std::int64_t count, Floats& buffer) {
  widen(values, count, buffer.data());
  return buffer.data();
}

void store_scale(std::byte* table, ScaleType type, std::int64_t block, std::uint32_t bits) {
  const int width = quant::scale_bytes(type);
  std::memcpy(table + block * width, &bits, static_cast<std::size_t>(width));  // little-endian
}

std::uint32_t load_scale(const std::byte* table, ScaleType type, std::int64_t block) {
  const int width = quant::scale_bytes(type);
  std::uint32_t bits = 0;
  std::memcpy(&bits, table + block * width, static_cast<std::size_t>(width));
  return bits;
}

BlockScale scale_of(const BlockRange& range, Storage storage, float factor) {
  if (storage.format == NumberFormat::mxfp4) return quant::microscaling_block_scale(range);
  return quant::with_format(storage.format, [&](auto format) {
    return quant::block_scale<decltype(format)>(range, quant::scale_type(storage.scale), factor);
  });
}

void encode(const float* values, std::int64_t count, const BlockScale& scale, Storage storage,
            const QuantizeOptions& options, std::int64_t start, std::uint8_t* codes) {
  const bool empty = scale.inverse == 0.0f;  // all codes are those of zero, whatever the rounding
  encode_block(storage.format, values, count, scale, empty ? Rounding::nearest_even : options.rounding, options.seed,
               static_cast<std::uint64_t>(options.first_index + start), codes);
}

/// Calls `action(block, start, count)` for every block.
template <class Action>
void for_blocks(const QuantizedLayout& layout, Storage storage, std::int64_t elements, Action action) {
  for (std::int64_t block = 0; block < layout.blocks; ++block) {
    const std::int64_t start = block * storage.block;
    action(block, start, std::min<std::int64_t>(storage.block, elements - start));
  }
}

template <class Value>
float tensor_scale(const Value* values, const QuantizedLayout& layout, Storage storage, std::int64_t elements,
                   std::byte* out) {
  if (storage.format != NumberFormat::nvfp4 || elements == 0) return 1.0f;
  Floats buffer;
  std::uint32_t largest = 0;
  for_blocks(layout, storage, elements, [&](std::int64_t, std::int64_t start, std::int64_t count) {
    largest = std::max(largest, largest_finite(as_floats(values + start, count, buffer), count));
  });
  const float scale = quant::tensor_scale_of(quant::float_of(largest));
  std::memcpy(out + layout.tensor_scale, &scale, sizeof(scale));
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
  const float factor = tensor_scale(values.data(), layout, storage, elements, out.data());
  Codes codes;
  Floats buffer;
  for_blocks(layout, storage, elements, [&](std::int64_t block, std::int64_t start, std::int64_t count) {
    const float* floats = as_floats(values.data() + start, count, buffer);
    const BlockScale scale = scale_of(range_of(floats, count, affine), storage, factor);
    store_scale(out.data() + layout.scales, type, block, scale.scale_bits);
    if (affine) store_scale(out.data() + layout.minimums, type, block, scale.minimum_bits);
    encode(floats, count, scale, storage, options, start, codes.data());
    pack_codes(bits, codes.data(), count, out.data() + layout.codes + start * bits / 8);
  });
}

/// Decodes block by block into `target(start)` or, where that is null, into a buffer that `consume` gets.
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
  for_blocks(layout, storage, elements, [&](std::int64_t block, std::int64_t start, std::int64_t count) {
    const float scale = quant::decode_scale(type, load_scale(bytes.data() + layout.scales, type, block)) * factor;
    const float minimum =
        affine ? quant::decode_scale(type, load_scale(bytes.data() + layout.minimums, type, block)) : 0.0f;
    unpack_codes(bits, bytes.data() + layout.codes + start * bits / 8, count, codes.data());
    float* decoded = target != nullptr ? target + start : buffer.data();
    decode_block(storage.format, codes.data(), count, scale, minimum, decoded);
    consume(decoded, start, count);
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
