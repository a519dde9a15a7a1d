// Tensors <-> block-scaled bytes. CPU here; quantize_cuda.h has the same calls for device pointers and gives the same
// bytes, because both run quant_core.h.
//
// Layout of the storage_bytes(storage, n) bytes of n elements (little-endian):
//   [tensor scale, FP32: nvfp4 only] [scale of each block] [minimum of each block: affine only] [codes]
// Codes are a stream of bits: element i takes bits [i * N, (i + 1) * N), lowest first. Blocks count from element 0; the
// last one may be short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/number_format.h"

namespace reckon {

struct QuantizeOptions {
  Rounding rounding = Rounding::nearest_even;
  std::uint64_t seed = 0;        // stochastic: element i uses random number (seed, first_index + i)
  std::int64_t first_index = 0;  // index of values[0] in the whole tensor, so that shards draw the same numbers
};

/// BF16 numbers as their bits.
using Bf16Bits = std::uint16_t;

/// Where the parts of a quantized tensor lie, in bytes.
struct QuantizedLayout {
  std::int64_t blocks = 0;
  std::int64_t tensor_scale = 0, scales = 0, minimums = 0, codes = 0;
  std::int64_t bytes = 0;  // equals storage_bytes
};

/// Throws ConfigError for a storage that cannot be executed: not block-scaled, a block outside 16..2048 or not a
/// multiple of 8, an affine format whose minimum has no signed type (scale e8m0 or e4m3).
void check_storage(Storage storage);
QuantizedLayout quantized_layout(Storage storage, std::int64_t elements);

/// `out` has storage_bytes(storage, values.size()) bytes; a wrong size is a std::logic_error.
void quantize(std::span<const float> values, Storage storage, const QuantizeOptions& options, std::span<std::byte> out);
void quantize(std::span<const Bf16Bits> values, Storage storage, const QuantizeOptions& options,
              std::span<std::byte> out);

/// Rows that lie `stride` values apart, as a tensor of rows * width elements, row by row: a part of a fused buffer.
template <class Value>
struct StridedRows {
  const Value* values = nullptr;
  std::int64_t rows = 0, width = 0, stride = 0;
};
void quantize(StridedRows<float> values, Storage storage, const QuantizeOptions& options, std::span<std::byte> out);
void quantize(StridedRows<Bf16Bits> values, Storage storage, const QuantizeOptions& options, std::span<std::byte> out);

void dequantize(std::span<const std::byte> bytes, Storage storage, std::span<float> values);
/// Rounded to nearest even.
void dequantize(std::span<const std::byte> bytes, Storage storage, std::span<Bf16Bits> values);
/// sums[i] += decoded value i, in FP32.
void dequantize_add(std::span<const std::byte> bytes, Storage storage, std::span<float> sums);

}  // namespace reckon
