// The inner loops over one block of at most kLargestBlock elements, in the first-level cache. They are compiled once
// per instruction set and chosen when the program starts; every version gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/number_format.h"
#include "runtime/quant/quant_core.h"
#include "runtime/quant/quantize.h"

namespace reckon {

constexpr std::int64_t kLargestBlock = 2048;
constexpr std::int64_t kCodePadding = 8;  // code arrays are this much longer than a block

void widen(const Bf16Bits* values, std::int64_t count, float* out);
/// To nearest even.
void narrow(const float* values, std::int64_t count, Bf16Bits* out);
void add(const float* values, std::int64_t count, float* sums);

quant::BlockRange range_of(const float* values, std::int64_t count, bool affine);
/// Bits of the largest finite magnitude.
std::uint32_t largest_finite(const float* values, std::int64_t count);

/// One code a byte. `first` is the index of values[0] for random numbers.
void encode_block(NumberFormat format, const float* values, std::int64_t count, const quant::BlockScale& scale,
                  Rounding rounding, std::uint64_t seed, std::uint64_t first, std::uint8_t* codes);
void decode_block(NumberFormat format, const std::uint8_t* codes, std::int64_t count, float scale, float minimum,
                  float* out);

/// Codes of `bits` bits <-> a stream of bits, whole bytes: ceil(count * bits / 8). Up to kCodePadding codes beyond
/// `count` are written.
void pack_codes(int bits, std::uint8_t* codes, std::int64_t count, std::byte* out);
void unpack_codes(int bits, const std::byte* in, std::int64_t count, std::uint8_t* codes);

}  // namespace reckon
