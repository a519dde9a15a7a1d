// Element types and block-scaled storage formats: their names and exactly how many bytes they take.
// The arithmetic (encode, decode) lives in runtime/quant, which must agree with these sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/units.h"

namespace reckon {

enum class NumberFormat {
  fp64,
  fp32,
  bf16,
  fp16,
  fp8_e4m3,
  fp8_e5m2,
  int8,
  int7,
  int6,
  int5,
  int4,
  int3,
  int2,  // block-scaled, symmetric
  uint8,
  uint7,
  uint6,
  uint5,
  uint4,
  uint3,
  uint2,  // block-scaled, affine (minimum and step per block)
  fp6_e2m3,
  fp6_e3m2,
  fp4_e2m1,
  nf4,
  mxfp4,
  nvfp4,
};

enum class ScaleFormat { fp32, bf16, e8m0, e4m3 };

/// How a value is put on a format's grid: to the nearest (ties to even), or up with the probability of the rest, which
/// keeps the mean.
enum class Rounding { nearest_even, stochastic };

/// "bf16" <-> NumberFormat::bf16.
std::string_view name_of(NumberFormat format);
std::optional<NumberFormat> number_format(std::string_view name);
const std::vector<NumberFormat>& all_number_formats();

/// Payload bits of one element, without scales.
int payload_bits(NumberFormat format);

/// Has one scale (affine: scale and minimum) per block of elements. All formats of 8 bits and fewer do.
bool is_block_scaled(NumberFormat format);
/// uint formats: a block has a minimum beside its scale.
bool is_affine(NumberFormat format);

/// The format of the same family with `bits` payload bits: int4 -> int5; floating formats go by what exists: fp4_e2m1
/// and nf4 become int5, fp6_e2m3, int7, fp8_e4m3. Unscaled formats stay. Throws std::logic_error outside 2..8.
NumberFormat with_bits(NumberFormat format, int bits);

/// Relative error that storing normal numbers causes, sqrt(E[(x - stored x)^2] / E[x^2]): blocks of 128 with bf16
/// scales, to nearest. Measured with runtime/quant, whose tests hold the table to it. Plain formats: as rounded.
double relative_error(NumberFormat format);

/// How a tensor is stored: format, block length and scale type (both ignored unless block-scaled).
struct Storage {
  NumberFormat format = NumberFormat::bf16;
  int block = 128;
  ScaleFormat scale = ScaleFormat::bf16;

  bool operator==(const Storage&) const = default;
};

/// The storage with block and scale that its format dictates: mxfp4 32 and e8m0, nvfp4 16 and e4m3; others unchanged.
Storage with_fixed_blocks(Storage storage);

/// Bytes of `elements` values: packed payload rounded up to whole bytes per tensor, plus one scale (affine: and one
/// minimum of the same type) per started block; nvfp4 has one fp32 scale per tensor on top.
Bytes storage_bytes(Storage storage, std::int64_t elements);

}  // namespace reckon
