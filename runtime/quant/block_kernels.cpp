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
                                                   BlockRange* ranges) {
  for_blocks<true>(
      count, block, [&](std::int64_t index, std::int64_t start, auto length) __attribute__((always_inline)) {
        ranges[index] = {largest_magnitude(values + start, length), 0.0f, 0.0f};
      });
}

/// The largest magnitude is that of the lowest or of the highest: what is not a number lies beyond both infinities.
template <class Value>
[[gnu::always_inline]] inline void find_ends(const Value* values, std::int64_t count, int block, BlockRange* ranges) {
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
        ranges[index] = {below < above ? above : below, low, high};
      });
}

template <class Value>
[[gnu::always_inline]] inline void find_ranges(const Value* values, std::int64_t count, int block, bool affine,
                                               BlockRange* ranges) {
  if (affine) find_ends(values, count, block, ranges);
  else find_magnitudes(values, count, block, ranges);
}

// NF4 has no arithmetic, only levels: they are looked up eight at a time by a permutation of two registers, which every
// instruction set from AVX2 on has.
using Floats8 = float __attribute__((vector_size(32)));
using Ints8 = std::int32_t __attribute__((vector_size(32)));
using Codes8 = std::uint8_t __attribute__((vector_size(8)));
using Halves8 = Bf16Bits __attribute__((vector_size(16)));

struct Nf4Tables {
  alignas(32) float levels[16], thresholds[16];
};
constexpr Nf4Tables nf4_tables() {
  Nf4Tables tables{};
  for (std::uint32_t code = 0; code < 16; ++code) {
    tables.levels[code] = NormalFloat4::level(code);
    tables.thresholds[code] = code == 0 ? 0.0f : NormalFloat4::threshold(code);
  }
  return tables;
}
constexpr Nf4Tables kNf4 = nf4_tables();

[[gnu::always_inline]] inline void load_eight(const float* from, Floats8& values) {
  std::memcpy(&values, from, sizeof(values));
}
[[gnu::always_inline]] inline void load_eight(const Bf16Bits* from, Floats8& values) {
  Halves8 halves;
  std::memcpy(&halves, from, sizeof(halves));
  const Ints8 bits = __builtin_convertvector(halves, Ints8) << 16;
  std::memcpy(&values, &bits, sizeof(values));
}

/// As NormalFloat4::encode of value * inverse, to nearest.
template <class Value>
[[gnu::always_inline]] inline void encode_nf4(const Value* from, std::int64_t length, float inverse, std::uint8_t* to) {
  Floats8 low, high;
  std::memcpy(&low, kNf4.thresholds, sizeof(low));
  std::memcpy(&high, kNf4.thresholds + 8, sizeof(high));
  const float middle = kNf4.thresholds[8];
  std::int64_t i = 0;
  for (; i + 8 <= length; i += 8) {
    Floats8 value;
    load_eight(from + i, value);
    value = value * inverse;
    Ints8 code = (value > middle) & 8;
    code |= (value > __builtin_shuffle(low, high, code | 4)) & 4;
    code |= (value > __builtin_shuffle(low, high, code | 2)) & 2;
    code |= (value > __builtin_shuffle(low, high, code | 1)) & 1;
    const Codes8 codes = __builtin_convertvector(code, Codes8);
    std::memcpy(to + i, &codes, sizeof(codes));
  }
  for (; i < length; ++i)
    to[i] = static_cast<std::uint8_t>(NormalFloat4::encode(load(from[i]) * inverse, NearestEven{}));
}

[[gnu::always_inline]] inline void decode_nf4(const std::uint8_t* codes, std::int64_t length, float scale, float* out) {
  Floats8 low, high;
  std::memcpy(&low, kNf4.levels, sizeof(low));
  std::memcpy(&high, kNf4.levels + 8, sizeof(high));
  std::int64_t i = 0;
  for (; i + 8 <= length; i += 8) {
    Codes8 eight;
    std::memcpy(&eight, codes + i, sizeof(eight));
    const Floats8 value = __builtin_shuffle(low, high, __builtin_convertvector(eight, Ints8)) * scale;
    std::memcpy(out + i, &value, sizeof(value));
  }
  for (; i < length; ++i) out[i] = NormalFloat4::level(codes[i]) * scale;
}

template <class Value>
[[gnu::always_inline]] inline std::uint32_t find_largest_finite(const Value* values, std::int64_t count) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = bits_of(load(values[i])) & kMagnitude;
    const std::uint32_t finite = magnitude < kInfinity ? magnitude : 0u;
    largest = largest < finite ? finite : largest;
  }
  return largest;
}

template <class Value>
[[gnu::always_inline]] inline void encode(NumberFormat format, const Value* values, std::int64_t count, int block,
                                          const BlockScale* scales, RunRounding rounding, std::uint8_t* codes) {
  with_format(
      format, [&](auto element) __attribute__((always_inline)) {
        using Format = decltype(element);
        for_blocks<std::is_same_v<Format, Fp4E2M1>>(
            count, block, [&](std::int64_t index, std::int64_t start, auto length) __attribute__((always_inline)) {
              const BlockScale scale = scales[index];
              const Value* from = values + start;
              std::uint8_t* to = codes + start;
              if (scale.inverse == 0.0f) {  // also where values are not finite: all codes are those of zero
                for (std::int64_t i = 0; i < length; ++i)
                  to[i] = static_cast<std::uint8_t>(Format::encode(0.0f, NearestEven{}));
              } else if (std::is_same_v<Format, NormalFloat4> && rounding.rounding == Rounding::nearest_even) {
                encode_nf4(from, length, scale.inverse, to);
              } else if (rounding.rounding == Rounding::nearest_even) {
                for (std::int64_t i = 0; i < length; ++i)
                  to[i] = static_cast<std::uint8_t>(encode_scaled<Format>(load(from[i]), scale, NearestEven{}));
              } else {
                const std::uint64_t first = rounding.first + static_cast<std::uint64_t>(start);
                for (std::int64_t i = 0; i < length; ++i) {
                  const Stochastic round{random_bits(rounding.seed, first + static_cast<std::uint64_t>(i))};
                  to[i] = static_cast<std::uint8_t>(encode_scaled<Format>(load(from[i]), scale, round));
                }
              }
            });
      });
}

}  // namespace

RECKON_CPU_CLONES void narrow(const float* values, std::int64_t count, Bf16Bits* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = bf16_of(values[i]);
}

RECKON_CPU_CLONES void add(const float* values, std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += values[i];
}

RECKON_CPU_CLONES void ranges_of(const float* values, std::int64_t count, int block, bool affine, BlockRange* ranges) {
  find_ranges(values, count, block, affine, ranges);
}

RECKON_CPU_CLONES void ranges_of(const Bf16Bits* values, std::int64_t count, int block, bool affine,
                                 BlockRange* ranges) {
  find_ranges(values, count, block, affine, ranges);
}

RECKON_CPU_CLONES std::uint32_t largest_finite(const float* values, std::int64_t count) {
  return find_largest_finite(values, count);
}

RECKON_CPU_CLONES std::uint32_t largest_finite(const Bf16Bits* values, std::int64_t count) {
  return find_largest_finite(values, count);
}

/// The same steps as block_scale, without branches. Blocks that may need its other steps (not finite, next to zero,
/// next to the largest number) are left to it.
RECKON_CPU_CLONES void e4m3_scales_of_fp4(const BlockRange* ranges, std::int64_t blocks, float factor,
                                          BlockScale* scales) {
  constexpr std::uint32_t kPlentyOfRoom = (125u + 127u) << 23;  // 2^125
  std::array<std::uint32_t, kRunBlocks> largest, code;
  std::array<float, kRunBlocks> needed, scale, inverse;
  const auto count = static_cast<std::size_t>(blocks);
  for (std::size_t i = 0; i < count; ++i) largest[i] = ranges[i].largest_magnitude;
  for (std::size_t i = 0; i < count; ++i) {
    const float ideal = float_of(largest[i]) / Fp4E2M1::kLargest;
    needed[i] = ideal / factor;
    const std::uint32_t nearest = Fp8E4M3::encode(needed[i], NearestEven{});  // saturates
    const bool too_small = (Fp8E4M3::decode(nearest) < needed[i]) & (nearest < 0x7eu);
    code[i] = nearest + (too_small ? 1u : 0u);
    scale[i] = Fp8E4M3::decode(code[i]) * factor;
    const float reciprocal = 1.0f / scale[i];
    inverse[i] = bits_of(scale[i]) < kSmallestNormal ? 0.0f : reciprocal;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (largest[i] < kPlentyOfRoom && needed[i] >= power_of_two(-126))
      scales[i] = {code[i], 0, scale[i], 0.0f, inverse[i]};
    else scales[i] = block_scale<Fp4E2M1>(ranges[i], ScaleType::e4m3, factor);
  }
}

RECKON_CPU_CLONES void encode_run(NumberFormat format, const float* values, std::int64_t count, int block,
                                  const BlockScale* scales, RunRounding rounding, std::uint8_t* codes) {
  encode(format, values, count, block, scales, rounding, codes);
}

RECKON_CPU_CLONES void encode_run(NumberFormat format, const Bf16Bits* values, std::int64_t count, int block,
                                  const BlockScale* scales, RunRounding rounding, std::uint8_t* codes) {
  encode(format, values, count, block, scales, rounding, codes);
}

RECKON_CPU_CLONES void decode_run(NumberFormat format, const std::uint8_t* codes, std::int64_t count, int block,
                                  const float* scales, const float* minimums, float* out) {
  with_format(
      format, [&](auto element) __attribute__((always_inline)) {
        using Format = decltype(element);
        for_blocks<std::is_same_v<Format, Fp4E2M1>>(
            count, block, [&](std::int64_t index, std::int64_t start, auto length) __attribute__((always_inline)) {
              const float scale = scales[index], minimum = Format::kAffine ? minimums[index] : 0.0f;
              if (std::is_same_v<Format, NormalFloat4>) return decode_nf4(codes + start, length, scale, out + start);
              for (std::int64_t i = 0; i < length; ++i)
                out[start + i] = decode_element<Format>(codes[start + i], scale, minimum);
            });
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
