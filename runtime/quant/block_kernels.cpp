// RECKON_CPU_CLONES, set by CMake, is the attribute that makes the compiler build a function for several instruction
// sets (empty where that is not supported). What such a function calls is inlined into it, or it would be built for the
// oldest set only.
#include "runtime/quant/block_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/quant/with_format.h"

namespace reckon {
namespace {

using namespace quant;

/// Eight codes, one a byte -> the low 8 N bits: neighbours are joined in pairs, fours and all.
template <int N>
[[gnu::always_inline]] inline std::uint64_t join(std::uint64_t codes) {
  constexpr std::uint64_t k2 = 0x00ff00ff00ff00ffu, k4 = 0x0000ffff0000ffffu, k8 = 0x00000000ffffffffu;
  codes = (codes & k2) | ((codes >> 8 & k2) << N);
  codes = (codes & k4) | ((codes >> 16 & k4) << 2 * N);
  return (codes & k8) | (codes >> 32) << 4 * N;
}

/// The reverse.
template <int N>
[[gnu::always_inline]] inline std::uint64_t spread(std::uint64_t bits) {
  constexpr std::uint64_t k1 = (std::uint64_t{1} << N) - 1, k2 = (std::uint64_t{1} << 2 * N) - 1,
                          k4 = (std::uint64_t{1} << 4 * N) - 1;
  constexpr std::uint64_t k2s = k2 | k2 << 32, k1s = k1 | k1 << 16 | k1 << 32 | k1 << 48;
  bits = (bits & k4) | (bits >> 4 * N & k4) << 32;
  bits = (bits & k2s) | (bits >> 2 * N & k2s) << 16;
  return (bits & k1s) | (bits >> N & k1s) << 8;
}

template <int N>
[[gnu::always_inline]] inline void pack(const std::uint8_t* codes, std::int64_t count, std::byte* out) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8, out += N) {
    std::uint64_t eight;
    std::memcpy(&eight, codes + i, 8);
    const std::uint64_t bits = join<N>(eight);
    std::memcpy(out, &bits, N);
  }
  if (i == count) return;
  std::uint64_t rest = 0;  // the unused codes are zeros
  std::memcpy(&rest, codes + i, static_cast<std::size_t>(count - i));
  const std::uint64_t bits = join<N>(rest);
  std::memcpy(out, &bits, static_cast<std::size_t>(((count - i) * N + 7) / 8));
}

template <int N>
[[gnu::always_inline]] inline void unpack(const std::byte* in, std::int64_t count, std::uint8_t* codes) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8, in += N) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, in, N);
    const std::uint64_t eight = spread<N>(bits);
    std::memcpy(codes + i, &eight, 8);
  }
  if (i == count) return;
  std::uint64_t bits = 0;
  std::memcpy(&bits, in, static_cast<std::size_t>(((count - i) * N + 7) / 8));
  const std::uint64_t eight = spread<N>(bits);
  std::memcpy(codes + i, &eight, 8);
}

[[gnu::always_inline]] inline void pack_nibbles(const std::uint8_t* codes, std::int64_t count, std::byte* out) {
  const std::int64_t pairs = count / 2;
  for (std::int64_t i = 0; i < pairs; ++i) out[i] = static_cast<std::byte>(codes[2 * i] | codes[2 * i + 1] << 4);
  if (count % 2 != 0) out[pairs] = static_cast<std::byte>(codes[count - 1]);
}

[[gnu::always_inline]] inline void unpack_nibbles(const std::byte* in, std::int64_t count, std::uint8_t* codes) {
  const std::int64_t pairs = (count + 1) / 2;
  for (std::int64_t i = 0; i < pairs; ++i) {
    codes[2 * i] = static_cast<std::uint8_t>(in[i]) & 15u;
    codes[2 * i + 1] = static_cast<std::uint8_t>(static_cast<std::uint8_t>(in[i]) >> 4);
  }
}

[[gnu::always_inline]] inline float load(float value) {
  return value;
}
[[gnu::always_inline]] inline float load(Bf16Bits bits) {
  return float_of_bf16(bits);
}

/// Calls `action(index, start, length)` for every block of a run. With ShortBlocks, short lengths are compile-time
/// constants, because a loop of unknown length costs more than they have elements; it multiplies the code, so only the
/// formats that are defined with short blocks ask for it.
template <bool ShortBlocks, class Action>
[[gnu::always_inline]] inline void for_blocks(std::int64_t count, int block, Action action) {
  const auto run = [&](auto length) __attribute__((always_inline)) {
    const std::int64_t step = length;
    std::int64_t index = 0, start = 0;
    for (; start + step <= count; ++index, start += step) action(index, start, length);
    if (start < count) action(index, start, count - start);
  };
  if constexpr (ShortBlocks) {
    if (block == 16) return run(std::integral_constant<std::int64_t, 16>{});
    if (block == 32) return run(std::integral_constant<std::int64_t, 32>{});
  }
  run(static_cast<std::int64_t>(block));
}

[[gnu::always_inline]] inline std::uint32_t magnitude_bits(float value) {
  return bits_of(value) & kMagnitude;
}
[[gnu::always_inline]] inline std::uint16_t magnitude_bits(Bf16Bits bits) {
  return static_cast<std::uint16_t>(bits & 0x7fffu);
}
[[gnu::always_inline]] inline std::uint32_t as_fp32(std::uint32_t magnitude) {
  return magnitude;
}
[[gnu::always_inline]] inline std::uint32_t as_fp32(std::uint16_t magnitude) {
  return static_cast<std::uint32_t>(magnitude) << 16;
}

template <class Value, class Length>
[[gnu::always_inline]] inline std::uint32_t largest_magnitude(const Value* values, Length length) {
  decltype(magnitude_bits(values[0])) largest = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    const auto magnitude = magnitude_bits(values[i]);
    largest = largest < magnitude ? magnitude : largest;
  }
  return as_fp32(largest);
}

/// Numbers compare as their bits do when negative ones are flipped.
[[gnu::always_inline]] inline std::int32_t ordered_bits(float value) {
  const auto bits = static_cast<std::int32_t>(bits_of(value));
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
[[gnu::always_inline]] inline std::int16_t ordered_bits(Bf16Bits value) {
  const auto bits = static_cast<std::int16_t>(value);
  return static_cast<std::int16_t>(bits ^ ((bits >> 15) & 0x7fff));
}
[[gnu::always_inline]] inline float number_of(std::int16_t ordered) {
  return float_of_bf16(static_cast<Bf16Bits>(ordered ^ ((ordered >> 15) & 0x7fff)));
}
[[gnu::always_inline]] inline float number_of(std::int32_t ordered) {
  return float_of(static_cast<std::uint32_t>(ordered ^ ((ordered >> 31) & 0x7fffffff)));
}

template <class Value>
[[gnu::always_inline]] inline void find_magnitudes(const Value* values, std::int64_t count, int block,
                                                   RunRanges& ranges) {
  for_blocks<true>(
      count, block, [&](std::int64_t index, std::int64_t start, auto length) __attribute__((always_inline)) {
        ranges.largest_magnitude[static_cast<std::size_t>(index)] = largest_magnitude(values + start, length);
      });
}

/// The largest magnitude is that of the lowest or of the highest: what is not a number lies beyond both infinities.
template <class Value>
[[gnu::always_inline]] inline void find_ends(const Value* values, std::int64_t count, int block, RunRanges& ranges) {
  for_blocks<false>(
      count, block, [&](std::int64_t index, std::int64_t start, auto length) __attribute__((always_inline)) {
        using Ordered = decltype(ordered_bits(values[0]));
        Ordered lowest = std::numeric_limits<Ordered>::max(), highest = std::numeric_limits<Ordered>::min();
        for (std::int64_t i = 0; i < length; ++i) {
          const Ordered ordered = ordered_bits(values[start + i]);
          lowest = ordered < lowest ? ordered : lowest;
          highest = highest < ordered ? ordered : highest;
        }
        const float low = number_of(lowest), high = number_of(highest);
        const std::uint32_t below = bits_of(low) & kMagnitude, above = bits_of(high) & kMagnitude;
        const auto at = static_cast<std::size_t>(index);
        ranges.largest_magnitude[at] = below < above ? above : below;
        ranges.lowest[at] = low;
        ranges.highest[at] = high;
      });
}

template <class Value>
[[gnu::always_inline]] inline void find_ranges(const Value* values, std::int64_t count, int block, bool affine,
                                               RunRanges& ranges) {
  if (affine) find_ends(values, count, block, ranges);
  else find_magnitudes(values, count, block, ranges);
}

// Four bits name one of sixteen levels: they are looked up eight at a time by a permutation of two registers, which
// every instruction set from AVX2 on has.
using Floats8 = float __attribute__((vector_size(32)));
using Ints8 = std::int32_t __attribute__((vector_size(32)));
using Words8 = std::uint32_t __attribute__((vector_size(32)));
using Codes8 = std::uint8_t __attribute__((vector_size(8)));

template <class Format>
struct Levels {
  alignas(32) float of_code[16];

  constexpr Levels() : of_code() {
    for (std::uint32_t code = 0; code < 16; ++code) of_code[code] = Format::decode(code);
  }
};

/// As decode_element; `packed` are the codes as they are stored, eight in each 32 bits.
template <class Format>
[[gnu::always_inline]] inline void decode_four_bits(const std::byte* packed, std::int64_t length, float scale,
                                                    float minimum, float* out) {
  static constexpr Levels<Format> kLevels;
  constexpr Words8 kShifts{0, 4, 8, 12, 16, 20, 24, 28};
  Floats8 low, high;
  std::memcpy(&low, kLevels.of_code, sizeof(low));
  std::memcpy(&high, kLevels.of_code + 8, sizeof(high));
  std::int64_t i = 0;
  for (; i + 8 <= length; i += 8) {
    std::uint32_t eight;
    std::memcpy(&eight, packed + i / 2, sizeof(eight));
    Floats8 value = __builtin_shuffle(low, high, (eight >> kShifts) & 15u) * scale;
    if (Format::kAffine) value = value + minimum;
    std::memcpy(out + i, &value, sizeof(value));
  }
  for (; i < length; ++i) {
    const std::uint32_t code = static_cast<std::uint32_t>(packed[i / 2]) >> i % 2 * 4 & 15u;
    out[i] = decode_element<Format>(code, scale, minimum);
  }
}

/// Row r: the thresholds of NF4 that decide bit r, by the bits above it.
struct Nf4Thresholds {
  alignas(32) float of_bit[3][8];

  constexpr Nf4Thresholds() : of_bit() {
    for (std::uint32_t bit = 0; bit < 3; ++bit)
      for (std::uint32_t higher = 0; higher < 8u >> bit; ++higher)
        of_bit[bit][higher] = NormalFloat4::threshold((2 * higher + 1) << bit);
  }
};

/// As NormalFloat4::encode, to nearest: a search from the highest bit down.
[[gnu::always_inline]] inline void encode_nf4(const float* scaled, std::int64_t count, std::uint8_t* codes) {
  static constexpr Nf4Thresholds kThresholds;
  constexpr float kMiddle = NormalFloat4::threshold(8);
  Floats8 thresholds[3];
  std::memcpy(&thresholds, kThresholds.of_bit, sizeof(thresholds));
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    Floats8 value;
    std::memcpy(&value, scaled + i, sizeof(value));
    Ints8 code = -(value > kMiddle);  // true is -1
    for (int bit = 2; bit >= 0; --bit) code = code + code - (value > __builtin_shuffle(thresholds[bit], code));
    const Codes8 eight = __builtin_convertvector(code, Codes8);
    std::memcpy(codes + i, &eight, sizeof(eight));
  }
  for (; i < count; ++i) codes[i] = static_cast<std::uint8_t>(NormalFloat4::encode(scaled[i], NearestEven{}));
}

/// What is not finite counts as zero, by a mask: the compiler does not vectorise a choice below a maximum.
template <class Value>
[[gnu::always_inline]] inline std::uint32_t find_largest_finite(const Value* values, std::int64_t count) {
  using Magnitude = decltype(magnitude_bits(values[0]));
  constexpr auto kNotFinite = static_cast<Magnitude>(kInfinity >> (32 - 8 * sizeof(Magnitude)));
  Magnitude largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Magnitude magnitude = magnitude_bits(values[i]);
    const auto finite = static_cast<Magnitude>(magnitude & -Magnitude{magnitude < kNotFinite});
    largest = largest < finite ? finite : largest;
  }
  return as_fp32(largest);
}

/// Known lengths pay for BF16 only: the compiler turns FP32 blocks of sixteen about and works on sixteen at a time.
template <bool Affine, class Value>
[[gnu::always_inline]] inline void scale_blocks(const Value* values, std::int64_t count, int block,
                                                const RunScales& scales, float* scaled) {
  for_blocks<std::is_same_v<Value, Bf16Bits> && !Affine>(
      count, block, [&](std::int64_t index, std::int64_t start, auto length) __attribute__((always_inline)) {
        const auto at = static_cast<std::size_t>(index);
        const BlockScale scale{0, 0, 0.0f, Affine ? scales.minimum[at] : 0.0f, scales.inverse[at]};
        const Value* from = values + start;
        float* to = scaled + start;
        if (scale.inverse == 0.0f) {  // outside of the loop
          for (std::int64_t i = 0; i < length; ++i) to[i] = 0.0f;
        } else {
          for (std::int64_t i = 0; i < length; ++i) to[i] = scaled_value<Affine>(load(from[i]), scale);
        }
      });
}

}  // namespace

RECKON_CPU_CLONES void narrow(const float* values, std::int64_t count, Bf16Bits* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = bf16_of(values[i]);
}

RECKON_CPU_CLONES void add(const float* values, std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += values[i];
}

RECKON_CPU_CLONES void ranges_of(const float* values, std::int64_t count, int block, bool affine, RunRanges& ranges) {
  find_ranges(values, count, block, affine, ranges);
}

RECKON_CPU_CLONES void ranges_of(const Bf16Bits* values, std::int64_t count, int block, bool affine,
                                 RunRanges& ranges) {
  find_ranges(values, count, block, affine, ranges);
}

RECKON_CPU_CLONES std::uint32_t largest_finite(const float* values, std::int64_t count) {
  return find_largest_finite(values, count);
}

RECKON_CPU_CLONES std::uint32_t largest_finite(const Bf16Bits* values, std::int64_t count) {
  return find_largest_finite(values, count);
}

namespace {

template <ScaleType Type>
[[gnu::always_inline]] inline bool find_scales(const RunRanges& ranges, std::int64_t blocks, float largest_code,
                                               float factor, RunScales& scales) {
  constexpr std::uint32_t kPlentyOfRoom = (125u + 127u) << 23;  // 2^125
  std::uint32_t others = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(blocks); ++i) {
    const std::uint32_t largest = ranges.largest_magnitude[i];
    const float needed = float_of(largest) / largest_code / factor;
    const std::uint32_t bits = scale_at_least(Type, needed);
    const float scale = decode_finite_scale(Type, bits) * factor, reciprocal = 1.0f / scale;
    scales.scale_bits[i] = bits;
    scales.inverse[i] = bits_of(scale) < kSmallestNormal ? 0.0f : reciprocal;
    others |= largest >= kPlentyOfRoom ? 1u : 0u;
    others |= needed < power_of_two(-126) ? 1u : 0u;
  }
  return others == 0;
}

}  // namespace

RECKON_CPU_CLONES bool symmetric_scales(const RunRanges& ranges, std::int64_t blocks, ScaleType type,
                                        float largest_code, float factor, RunScales& scales) {
  switch (type) {
    case ScaleType::fp32: return find_scales<ScaleType::fp32>(ranges, blocks, largest_code, factor, scales);
    case ScaleType::bf16: return find_scales<ScaleType::bf16>(ranges, blocks, largest_code, factor, scales);
    case ScaleType::e8m0: return find_scales<ScaleType::e8m0>(ranges, blocks, largest_code, factor, scales);
    case ScaleType::e4m3: return find_scales<ScaleType::e4m3>(ranges, blocks, largest_code, factor, scales);
  }
  return false;
}

RECKON_CPU_CLONES void scale_run(const float* values, std::int64_t count, int block, bool affine,
                                 const RunScales& scales, float* scaled) {
  if (affine) scale_blocks<true>(values, count, block, scales, scaled);
  else scale_blocks<false>(values, count, block, scales, scaled);
}

RECKON_CPU_CLONES void scale_run(const Bf16Bits* values, std::int64_t count, int block, bool affine,
                                 const RunScales& scales, float* scaled) {
  if (affine) scale_blocks<true>(values, count, block, scales, scaled);
  else scale_blocks<false>(values, count, block, scales, scaled);
}

RECKON_CPU_CLONES void encode_run(NumberFormat format, const float* scaled, std::int64_t count, RunRounding rounding,
                                  std::uint8_t* codes) {
  with_format(
      format, [&](auto element) __attribute__((always_inline)) {
        using Format = decltype(element);
        if (rounding.rounding == Rounding::stochastic) {
          for (std::int64_t i = 0; i < count; ++i) {
            const Stochastic round{random_bits(rounding.seed, rounding.first + static_cast<std::uint64_t>(i))};
            codes[i] = static_cast<std::uint8_t>(Format::encode(scaled[i], round));
          }
        } else if constexpr (std::is_same_v<Format, NormalFloat4>) {
          encode_nf4(scaled, count, codes);
        } else {
          for (std::int64_t i = 0; i < count; ++i)
            codes[i] = static_cast<std::uint8_t>(Format::encode(scaled[i], NearestEven{}));
        }
      });
}

namespace {

template <class Format>
[[gnu::always_inline]] inline void decode(const std::byte* packed, std::int64_t count, int block, const float* scales,
                                          const float* minimums, float* out) {
  std::array<std::uint8_t, kRun + kCodePadding> codes;
  if constexpr (Format::kBits != 4) unpack_codes(Format::kBits, packed, count, codes.data());
  for_blocks<false>(
      count, block, [&](std::int64_t index, std::int64_t start, auto length) __attribute__((always_inline)) {
        const float scale = scales[index], minimum = Format::kAffine ? minimums[index] : 0.0f;
        if constexpr (Format::kBits == 4) {
          decode_four_bits<Format>(packed + start / 2, length, scale, minimum, out + start);
        } else {
          for (std::int64_t i = 0; i < length; ++i)
            out[start + i] = decode_element<Format>(codes[static_cast<std::size_t>(start + i)], scale, minimum);
        }
      });
}

}  // namespace

RECKON_CPU_CLONES void decode_run(NumberFormat format, const std::byte* packed, std::int64_t count, int block,
                                  const float* scales, const float* minimums, float* out) {
  with_format(
      format, [&](auto element) __attribute__((always_inline)) {
        decode<decltype(element)>(packed, count, block, scales, minimums, out);
      });
}

RECKON_CPU_CLONES void pack_codes(int bits, const std::uint8_t* codes, std::int64_t count, std::byte* out) {
  switch (bits) {
    case 2: return pack<2>(codes, count, out);
    case 3: return pack<3>(codes, count, out);
    case 4: return pack_nibbles(codes, count, out);
    case 5: return pack<5>(codes, count, out);
    case 6: return pack<6>(codes, count, out);
    case 7: return pack<7>(codes, count, out);
    default: std::memcpy(out, codes, static_cast<std::size_t>(count));
  }
}

RECKON_CPU_CLONES void unpack_codes(int bits, const std::byte* in, std::int64_t count, std::uint8_t* codes) {
  switch (bits) {
    case 2: return unpack<2>(in, count, codes);
    case 3: return unpack<3>(in, count, codes);
    case 4: return unpack_nibbles(in, count, codes);
    case 5: return unpack<5>(in, count, codes);
    case 6: return unpack<6>(in, count, codes);
    case 7: return unpack<7>(in, count, codes);
    default: std::memcpy(codes, in, static_cast<std::size_t>(count));
  }
}

}  // namespace reckon
