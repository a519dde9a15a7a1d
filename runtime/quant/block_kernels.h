// The inner loops over a run of whole blocks, at most kRun elements, so that all they touch stays in the first-level
// cache and the cost of a call is spread over several blocks. They are compiled once per instruction set and chosen
// when the program starts; every version gives the same bits.
#pragma once

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

/// Ranges of the blocks of `block` elements in values[0, count).
void ranges_of(const float* values, std::int64_t count, int block, bool affine, quant::BlockRange* ranges);
void ranges_of(const Bf16Bits* values, std::int64_t count, int block, bool affine, quant::BlockRange* ranges);
/// Bits of the largest finite magnitude.
std::uint32_t largest_finite(const float* values, std::int64_t count);
std::uint32_t largest_finite(const Bf16Bits* values, std::int64_t count);

/// Scales of NVFP4's blocks, whose sixteen elements do not pay for a scale made one by one; as quant::block_scale.
void e4m3_scales_of_fp4(const quant::BlockRange* ranges, std::int64_t blocks, float factor, quant::BlockScale* scales);

/// How a run is rounded; `first` is the index of values[0] for random numbers.
struct RunRounding {
  Rounding rounding = Rounding::nearest_even;
  std::uint64_t seed = 0, first = 0;
};

/// One code a byte; `scales` has one entry a block.
void encode_run(NumberFormat format, const float* values, std::int64_t count, int block,
                const quant::BlockScale* scales, RunRounding rounding, std::uint8_t* codes);
void encode_run(NumberFormat format, const Bf16Bits* values, std::int64_t count, int block,
                const quant::BlockScale* scales, RunRounding rounding, std::uint8_t* codes);
/// `scales` and `minimums` have one entry a block; minimums are read for affine formats only.
void decode_run(NumberFormat format, const std::uint8_t* codes, std::int64_t count, int block, const float* scales,
                const float* minimums, float* out);

/// Codes of `bits` bits <-> a stream of bits, whole bytes: ceil(count * bits / 8). Unpacking writes up to kCodePadding
/// codes beyond `count`.
void pack_codes(int bits, const std::uint8_t* codes, std::int64_t count, std::byte* out);
void unpack_codes(int bits, const std::byte* in, std::int64_t count, std::uint8_t* codes);

}  // namespace reckon
