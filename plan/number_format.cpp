#include "plan/number_format.h"

#include <array>
#include <stdexcept>
#include <utility>

namespace reckon {

namespace {

struct FormatRow {
  NumberFormat format;
  std::string_view name;
  int payload_bits;
  bool block_scaled;
  bool affine;
  double relative_error;
};

constexpr std::array kFormats{
    FormatRow{NumberFormat::fp64, "fp64", 64, false, false, 0},
    FormatRow{NumberFormat::fp32, "fp32", 32, false, false, 0},
    FormatRow{NumberFormat::bf16, "bf16", 16, false, false, 0.00166},
    FormatRow{NumberFormat::fp16, "fp16", 16, false, false, 0.00021},
    FormatRow{NumberFormat::fp8_e4m3, "fp8_e4m3", 8, true, false, 0.02578},
    FormatRow{NumberFormat::fp8_e5m2, "fp8_e5m2", 8, true, false, 0.05131},
    FormatRow{NumberFormat::int8, "int8", 8, true, false, 0.0065},
    FormatRow{NumberFormat::int7, "int7", 7, true, false, 0.01308},
    FormatRow{NumberFormat::int6, "int6", 6, true, false, 0.02654},
    FormatRow{NumberFormat::int5, "int5", 5, true, false, 0.05479},
    FormatRow{NumberFormat::int4, "int4", 4, true, false, 0.1174},
    FormatRow{NumberFormat::int3, "int3", 3, true, false, 0.27414},
    FormatRow{NumberFormat::int2, "int2", 2, true, false, 0.76777},
    FormatRow{NumberFormat::uint8, "uint8", 8, true, true, 0.00593},
    FormatRow{NumberFormat::uint7, "uint7", 7, true, true, 0.01189},
    FormatRow{NumberFormat::uint6, "uint6", 6, true, true, 0.02388},
    FormatRow{NumberFormat::uint5, "uint5", 5, true, true, 0.04842},
    FormatRow{NumberFormat::uint4, "uint4", 4, true, true, 0.10004},
    FormatRow{NumberFormat::uint3, "uint3", 3, true, true, 0.21428},
    FormatRow{NumberFormat::uint2, "uint2", 2, true, true, 0.5017},
    FormatRow{NumberFormat::fp6_e2m3, "fp6_e2m3", 6, true, false, 0.02653},
    FormatRow{NumberFormat::fp6_e3m2, "fp6_e3m2", 6, true, false, 0.05131},
    FormatRow{NumberFormat::fp4_e2m1, "fp4_e2m1", 4, true, false, 0.10904},
    FormatRow{NumberFormat::nf4, "nf4", 4, true, false, 0.09567},
    FormatRow{NumberFormat::mxfp4, "mxfp4", 4, true, false, 0.11505},
    FormatRow{NumberFormat::nvfp4, "nvfp4", 4, true, false, 0.10025},
};

const FormatRow& row_of(NumberFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}

constexpr bool rows_follow_the_enumeration() {
  for (std::size_t i = 0; i < kFormats.size(); ++i)
    if (kFormats[i].format != static_cast<NumberFormat>(i)) return false;
  return true;
}
static_assert(rows_follow_the_enumeration());

std::int64_t scale_bytes(ScaleFormat scale) {
  switch (scale) {
    case ScaleFormat::fp32: return 4;
    case ScaleFormat::bf16: return 2;
    case ScaleFormat::e8m0:
    case ScaleFormat::e4m3: return 1;
  }
  throw std::logic_error("unknown scale format");
}

std::int64_t divide_up(std::int64_t numerator, std::int64_t denominator) {
  return (numerator + denominator - 1) / denominator;
}

}  // namespace

std::string_view name_of(NumberFormat format) {
  return row_of(format).name;
}

std::optional<NumberFormat> number_format(std::string_view name) {
  for (const FormatRow& row : kFormats)
    if (row.name == name) return row.format;
  return std::nullopt;
}

const std::vector<NumberFormat>& all_number_formats() {
  static const std::vector<NumberFormat> formats = [] {
    std::vector<NumberFormat> all;
    for (const FormatRow& row : kFormats) all.push_back(row.format);
    return all;
  }();
  return formats;
}

int payload_bits(NumberFormat format) {
  return row_of(format).payload_bits;
}

bool is_block_scaled(NumberFormat format) {
  return row_of(format).block_scaled;
}

bool is_affine(NumberFormat format) {
  return row_of(format).affine;
}

double relative_error(NumberFormat format) {
  return row_of(format).relative_error;
}

NumberFormat with_bits(NumberFormat format, int bits) {
  const FormatRow& row = row_of(format);
  if (!row.block_scaled || row.payload_bits == bits) return format;
  if (bits < 2 || bits > 8) throw std::logic_error("storage widths go from 2 to 8 bits");
  const bool integer = row.name.starts_with("int") || row.affine;
  if (!integer && bits == 4) return NumberFormat::fp4_e2m1;
  if (!integer && bits == 6) return NumberFormat::fp6_e2m3;
  if (!integer && bits == 8) return NumberFormat::fp8_e4m3;
  const NumberFormat widest = row.affine ? NumberFormat::uint8 : NumberFormat::int8;
  return static_cast<NumberFormat>(static_cast<int>(widest) + 8 - bits);  // the enumeration descends from 8 to 2 bits
}

Storage with_fixed_blocks(Storage storage) {
  if (storage.format == NumberFormat::mxfp4) return {storage.format, 32, ScaleFormat::e8m0};
  if (storage.format == NumberFormat::nvfp4) return {storage.format, 16, ScaleFormat::e4m3};
  return storage;
}

Bytes storage_bytes(Storage requested, std::int64_t elements) {
  const Storage storage = with_fixed_blocks(requested);
  const FormatRow& row = row_of(storage.format);
  Bytes bytes(divide_up(elements * row.payload_bits, 8));
  if (!row.block_scaled || elements == 0) return bytes;
  if (storage.block < 1) throw std::logic_error("a block-scaled format needs a block of at least one element");
  const std::int64_t numbers_per_block = row.affine ? 2 : 1;
  bytes += Bytes(divide_up(elements, storage.block) * numbers_per_block * scale_bytes(storage.scale));
  if (storage.format == NumberFormat::nvfp4) bytes += Bytes(4);
  return bytes;
}

}  // namespace reckon
