// RECKON_CPU_CLONES, set by CMake, is the attribute that makes the compiler build a function for several instruction
// sets (empty where that is not supported). What such a function calls is inlined into it, or it would be built for the
// oldest set only.
#include "runtime/quant/block_kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>

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

}  // namespace

RECKON_CPU_CLONES void widen(const Bf16Bits* values, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = float_of_bf16(values[i]);
}

RECKON_CPU_CLONES void narrow(const float* values, std::int64_t count, Bf16Bits* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = bf16_of(values[i]);
}

RECKON_CPU_CLONES void add(const float* values, std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += values[i];
}

RECKON_CPU_CLONES BlockRange range_of(const float* values, std::int64_t count, bool affine) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = bits_of(values[i]) & kMagnitude;
    largest = largest < magnitude ? magnitude : largest;
  }
  if (!affine) return {largest, 0.0f, 0.0f};
  // As integers in the order of the numbers, so that the minimum does not depend on the order of comparisons.
  std::int32_t lowest = std::numeric_limits<std::int32_t>::max(), highest = std::numeric_limits<std::int32_t>::min();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = static_cast<std::int32_t>(bits_of(values[i]));
    const std::int32_t ordered = bits ^ ((bits >> 31) & 0x7fffffff);
    lowest = ordered < lowest ? ordered : lowest;
    highest = highest < ordered ? ordered : highest;
  }
  const auto number = [](std::int32_t ordered) __attribute__((always_inline)) {
    return float_of(static_cast<std::uint32_t>(ordered ^ ((ordered >> 31) & 0x7fffffff)));
  };
  return {largest, number(lowest), number(highest)};
}

RECKON_CPU_CLONES std::uint32_t largest_finite(const float* values, std::int64_t count) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = bits_of(values[i]) & kMagnitude;
    const std::uint32_t finite = magnitude < kInfinity ? magnitude : 0u;
    largest = largest < finite ? finite : largest;
  }
  return largest;
}

RECKON_CPU_CLONES void encode_block(NumberFormat format, const float* values, std::int64_t count,
                                    const BlockScale& block, Rounding rounding, std::uint64_t seed, std::uint64_t first,
                                    std::uint8_t* codes) {
  const BlockScale scale = block;
  with_format(
      format, [&](auto element) __attribute__((always_inline)) {
        using Format = decltype(element);
        if (rounding == Rounding::nearest_even) {
          for (std::int64_t i = 0; i < count; ++i)
            codes[i] = static_cast<std::uint8_t>(encode_element<Format>(values[i], scale, NearestEven{}));
        } else {
          for (std::int64_t i = 0; i < count; ++i) {
            const Stochastic round{random_bits(seed, first + static_cast<std::uint64_t>(i))};
            codes[i] = static_cast<std::uint8_t>(encode_element<Format>(values[i], scale, round));
          }
        }
      });
}

RECKON_CPU_CLONES void decode_block(NumberFormat format, const std::uint8_t* codes, std::int64_t count, float scale,
                                    float minimum, float* out) {
  with_format(
      format, [&](auto element) __attribute__((always_inline)) {
        for (std::int64_t i = 0; i < count; ++i) out[i] = decode_element<decltype(element)>(codes[i], scale, minimum);
      });
}

RECKON_CPU_CLONES void pack_codes(int bits, std::uint8_t* codes, std::int64_t count, std::byte* out) {
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
