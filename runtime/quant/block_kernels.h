// The inner loops over a run of whole blocks, at most kRun elements, so that all they touch stays in the first-level
// cache and the cost of a call is spread over several blocks. They are compiled once per instruction set and chosen
// when the program starts; every version gives the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plan/number_format.h"
#include "runtime/quant/quant_core.h"
#include "runtime/quant/quantize.h"

namespace reckon {

constexpr std::int64_t kRun = 2048;             // elements; also the largest block
constexpr std::int64_t kRunBlocks = kRun / 16;  // of the smallest block
constexpr std::int64_t kCodePadding = 8;        // code arrays are this much longer than a run

/// To nearest even.
void narrow(const float* values, std::int64_t count, Bf16Bits* out);
void add(const float* values, std::int64_t count, float* sums);

/// One entry a block; lowest and highest are filled for affine formats only.
struct RunRanges {
  std::array<std::uint32_t, kRunBlocks> largest_magnitude;
  std::array<float, kRunBlocks> lowest, highest;

  quant::BlockRange of(std::size_t block) const { return {largest_magnitude[block], lowest[block], highest[block]}; }
};

/// One entry a block; minimums are filled for affine formats only.
struct RunScales {
  std::array<std::uint32_t, kRunBlocks> scale_bits, minimum_bits;
  std::array<float, kRunBlocks> minimum, inverse;

  void set(std::size_t block, const quant::BlockScale& scale) {
    scale_bits[block] = scale.scale_bits;
    minimum_bits[block] = scale.minimum_bits;
    minimum[block] = scale.minimum;
    inverse[block] = scale.inverse;
  }
};

/// Ranges of the blocks of `block` elements in values[0, count).
void ranges_of(const float* values, std::int64_t count, int block, bool affine, RunRanges& ranges);
void ranges_of(const Bf16Bits* values, std::int64_t count, int block, bool affine, RunRanges& ranges);
/// Bits of the largest finite magnitude.
std::uint32_t largest_finite(const float* values, std::int64_t count);
std::uint32_t largest_finite(const Bf16Bits* values, std::int64_t count);

/// Scales of blocks without a minimum, by the steps of quant::block_scale that have no branches. False where a block
/// may need its others (not finite, next to zero, next to the largest number): the scales are worth nothing then.
bool symmetric_scales(const RunRanges& ranges, std::int64_t blocks, quant::ScaleType type, float largest_code,
                      float factor, RunScales& scales);

/// As quant::scaled_value.
void scale_run(const float* values, std::int64_t count, int block, bool affine, const RunScales& scales, float* scaled);
void scale_run(const Bf16Bits* values, std::int64_t count, int block, bool affine, const RunScales& scales,
               float* scaled);

/// How a run is rounded; `first` is the index of its first value for random numbers.
struct RunRounding {
  Rounding rounding = Rounding::nearest_even;
  std::uint64_t seed = 0, first = 0;
};

/// One code a byte. Blocks play no part any more, so that short ones cost as little as long ones.
void encode_run(NumberFormat format, const float* scaled, std::int64_t count, RunRounding rounding,
                std::uint8_t* codes);
/// `packed` as pack_codes leaves it; `scales` and `minimums` have one entry a block, minimums are read for affine
/// formats only.
void decode_run(NumberFormat format, const std::byte* packed, std::int64_t count, int block, const float* scales,
                const float* minimums, float* out);

/// Codes of `bits` bits <-> a stream of bits, whole bytes: ceil(count * bits / 8). Unpacking writes up to kCodePadding
/// codes beyond `count`.
void pack_codes(int bits, const std::uint8_t* codes, std::int64_t count, std::byte* out);
void unpack_codes(int bits, const std::byte* in, std::int64_t count, std::uint8_t* codes);

}  // namespace reckon
