// The arithmetic of block-scaled formats for one element and one block, the same lines on host and device. Only
// operations that IEEE 754 rounds in one way are used, each once, so all compilers agree to the bit (with contraction
// of multiply-adds off: -ffp-contract=off, --fmad=false).
//
// A block stores scale s (and, affine, minimum m): value = s * decode(code) (+ m). The scale is the largest magnitude
// over the format's largest value, rounded up to the scale's type, so that nothing saturates but what that type cannot
// reach. Edge cases:
//   NaN or infinity in a block   the scale is NaN: the whole block decodes to NaN, the rest of the tensor is untouched
//   zeros, or a scale < 2^-126   scale 0, the block decodes to zeros (affine: to its minimum)
//   largest magnitudes           the scale is lowered where scale * largest code would overflow: values decode finite;
//                                an affine block that spans more than the largest number counts as not finite
#pragma once

#include <cstdint>

#include "runtime/device/bfloat16.h"
#include "runtime/device/host_device.h"

namespace reckon::quant {

// --- numbers and their bits ---------------------------------------------------------------------------------------

RECKON_HOST_DEVICE constexpr std::uint32_t bits_of(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
RECKON_HOST_DEVICE constexpr float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

constexpr std::uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u, kNaN = 0x7fc00000u,
                        kSmallestNormal = 0x00800000u;

/// 2^exponent for -126 <= exponent <= 127.
RECKON_HOST_DEVICE constexpr float power_of_two(int exponent) {
  return float_of(static_cast<std::uint32_t>(exponent + 127) << 23);
}

RECKON_HOST_DEVICE constexpr float magnitude_of(float value) {
  return float_of(bits_of(value) & kMagnitude);
}
RECKON_HOST_DEVICE constexpr bool is_finite(float value) {
  return (bits_of(value) & kMagnitude) < kInfinity;
}
RECKON_HOST_DEVICE constexpr float smaller(float a, float b) {
  return b < a ? b : a;
}
/// Without a branch, by masks.
RECKON_HOST_DEVICE constexpr float choose(bool first, float a, float b) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(first);
  return float_of((bits_of(a) & mask) | (bits_of(b) & ~mask));
}
RECKON_HOST_DEVICE constexpr float larger(float a, float b) {
  return a < b ? b : a;
}

// --- rounding -----------------------------------------------------------------------------------------------------

/// Adding and taking away 1.5 * 2^23 leaves an integer in the low bits, rounded to nearest even; |value| < 2^22.
RECKON_HOST_DEVICE constexpr std::int32_t round_even(float value) {
  return static_cast<std::int32_t>(bits_of(value + 12582912.0f) - 0x4b400000u);
}

/// 32 random bits that depend on seed and element index alone: a counter-based generator with the mixing steps of
/// Wellons' triple32 (nullprogram.com, "Prospecting for hash functions").
RECKON_HOST_DEVICE constexpr std::uint32_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint32_t x = static_cast<std::uint32_t>(index) + static_cast<std::uint32_t>(seed);
  x ^= x >> 17;
  x *= 0xed5ad4bbu;
  x ^= static_cast<std::uint32_t>(index >> 32) ^ static_cast<std::uint32_t>(seed >> 32);
  x ^= x >> 11;
  x *= 0xac4c1b51u;
  x ^= x >> 15;
  x *= 0x31848babu;
  return x ^ (x >> 14);
}

/// Rounds to nearest even.
struct NearestEven {
  RECKON_HOST_DEVICE constexpr std::int32_t operator()(float value) const { return round_even(value); }
};

/// Rounds up with the probability of the fraction, by 24 random bits: unbiased to 2^-24.
struct Stochastic {
  std::uint32_t random;

  RECKON_HOST_DEVICE constexpr float threshold() const { return static_cast<float>(random >> 8) * power_of_two(-24); }
  RECKON_HOST_DEVICE constexpr std::int32_t operator()(float value) const {
    const std::int32_t nearest = round_even(value);
    const std::int32_t floor = nearest - (static_cast<float>(nearest) > value ? 1 : 0);
    return floor + (value - static_cast<float>(floor) > threshold() ? 1 : 0);
  }
};

// --- element formats: codes of kBits bits, largest value, encode (of a value already divided by the scale), decode
// ----

/// Two's complement; the most negative code is never written.
template <int Bits>
struct SymmetricInteger {
  static constexpr int kBits = Bits;
  static constexpr bool kAffine = false;
  static constexpr float kLargest = static_cast<float>((1 << (Bits - 1)) - 1);

  template <class Rounding>
  RECKON_HOST_DEVICE static constexpr std::uint32_t encode(float value, Rounding round) {
    return static_cast<std::uint32_t>(round(smaller(larger(value, -kLargest), kLargest))) & ((1u << Bits) - 1u);
  }
  RECKON_HOST_DEVICE static constexpr float decode(std::uint32_t code) {
    return static_cast<float>(static_cast<std::int32_t>(code << (32 - Bits)) >> (32 - Bits));
  }
};

/// Steps above the block's minimum.
template <int Bits>
struct AffineInteger {
  static constexpr int kBits = Bits;
  static constexpr bool kAffine = true;
  static constexpr float kLargest = static_cast<float>((1 << Bits) - 1);

  template <class Rounding>
  RECKON_HOST_DEVICE static constexpr std::uint32_t encode(float value, Rounding round) {
    return static_cast<std::uint32_t>(round(smaller(larger(value, 0.0f), kLargest)));
  }
  RECKON_HOST_DEVICE static constexpr float decode(std::uint32_t code) {
    return static_cast<float>(static_cast<std::int32_t>(code));
  }
};

/// Sign, exponent, mantissa; values above the largest saturate. LargestCode is the magnitude code of the largest value.
template <int ExponentBits, int MantissaBits, std::uint32_t LargestCode>
struct MiniFloat {
  static constexpr int kBits = 1 + ExponentBits + MantissaBits;
  static constexpr bool kAffine = false;
  static constexpr int kBias = (1 << (ExponentBits - 1)) - 1;
  static constexpr int kSmallestExponent = 1 - kBias;

  /// 2^exponent * (integer significand): an integer below 2^(MantissaBits + 1) times a power of two, both exact.
  RECKON_HOST_DEVICE static constexpr float decode_magnitude(std::uint32_t magnitude) {
    const auto exponent = static_cast<std::int32_t>(magnitude >> MantissaBits);
    const auto mantissa = static_cast<std::int32_t>(magnitude & ((1u << MantissaBits) - 1u));
    const std::int32_t significand = exponent == 0 ? mantissa : mantissa + (1 << MantissaBits);
    const std::int32_t power = (exponent == 0 ? 1 : exponent) - kBias - MantissaBits;
    return static_cast<float>(significand) * power_of_two(power);
  }
  static constexpr float kLargest = decode_magnitude(LargestCode);

  /// In units of the last place the magnitude is an integer; a carry into the exponent comes out right by itself. The
  /// exponent stays where FP32 has it: subnormal values take the smallest normal one's.
  template <class Rounding>
  RECKON_HOST_DEVICE static constexpr std::uint32_t encode(float value, Rounding round) {
    constexpr std::uint32_t kSmallestNormalBits = static_cast<std::uint32_t>(kSmallestExponent + 127) << 23;
    constexpr std::uint32_t kUnitsOfOne = static_cast<std::uint32_t>(MantissaBits + 2 * 127) << 23;
    const std::uint32_t bits = bits_of(value);
    const float magnitude = smaller(float_of(bits & kMagnitude), kLargest);
    const std::uint32_t binade = bits_of(magnitude) & kInfinity;
    const std::uint32_t exponent = binade < kSmallestNormalBits ? kSmallestNormalBits : binade;
    const auto units = static_cast<std::uint32_t>(round(magnitude * float_of(kUnitsOfOne - exponent)));
    const std::uint32_t code = ((exponent - kSmallestNormalBits) >> (23 - MantissaBits)) + units;
    return code | (bits >> 31) << (kBits - 1);
  }
  RECKON_HOST_DEVICE static constexpr float decode(std::uint32_t code) {
    const float magnitude = decode_magnitude(code & ((1u << (kBits - 1)) - 1u));
    return float_of(bits_of(magnitude) | (code >> (kBits - 1)) << 31);
  }
};

using Fp8E4M3 = MiniFloat<4, 3, 0x7e>;  // largest 448; 0x7f is NaN and never written
using Fp8E5M2 = MiniFloat<5, 2, 0x7b>;  // largest 57344; infinities and NaN are never written
using Fp6E2M3 = MiniFloat<2, 3, 0x1f>;  // largest 7.5
using Fp6E3M2 = MiniFloat<3, 2, 0x1f>;  // largest 28
using Fp4E2M1 = MiniFloat<2, 1, 0x7>;   // largest 6

/// The 16 levels of NF4 (QLoRA, arXiv 2305.14314, appendix E), ascending; code 7 is zero.
struct NormalFloat4 {
  static constexpr int kBits = 4;
  static constexpr bool kAffine = false;
  static constexpr float kLargest = 1.0f;

  RECKON_HOST_DEVICE static constexpr float level(std::uint32_t code) {
    constexpr float kLevels[16] = {-1.0f,
                                   -0.6961928009986877f,
                                   -0.5250730514526367f,
                                   -0.39491748809814453f,
                                   -0.28444138169288635f,
                                   -0.18477343022823334f,
                                   -0.09105003625154495f,
                                   0.0f,
                                   0.07958029955625534f,
                                   0.16093020141124725f,
                                   0.24611230194568634f,
                                   0.33791524171829224f,
                                   0.44070982933044434f,
                                   0.5626170039176941f,
                                   0.7229568362236023f,
                                   1.0f};
    return kLevels[code];
  }
  /// `value` lies above the middle of levels `upper` - 1 and `upper`, rounded to FP32, exactly if it exceeds this; on
  /// the middle itself the even code wins.
  RECKON_HOST_DEVICE static constexpr float threshold(std::uint32_t upper) {
    const float middle = 0.5f * (level(upper - 1) + level(upper));
    const std::uint32_t next_below = bits_of(middle) + (middle > 0.0f ? -1u : 1u);
    return upper % 2 == 0 ? float_of(next_below) : middle;
  }

  // Lookup and search as choices between constants, bit by bit from the top, which needs no table on a device. (The
  // loops over runs have their own lookup, block_kernels.cpp.)
  template <std::uint32_t Bit = 8, std::uint32_t Known = 0>
  RECKON_HOST_DEVICE static constexpr float decode(std::uint32_t code) {
    if constexpr (Bit == 0) {
      constexpr float kLevel = level(Known);
      return kLevel;
    } else {
      const float high = decode<Bit / 2, Known | Bit>(code), low = decode<Bit / 2, Known>(code);
      return choose((code & Bit) != 0, high, low);
    }
  }
  /// The threshold that decides bit `Bit` once the higher bits are those of `code`.
  template <std::uint32_t Bit, std::uint32_t Higher = 8, std::uint32_t Known = 0>
  RECKON_HOST_DEVICE static constexpr float threshold_below(std::uint32_t code) {
    if constexpr (Higher == Bit) {
      constexpr float kThreshold = threshold(Known | Bit);
      return kThreshold;
    } else {
      const float high = threshold_below<Bit, Higher / 2, (Known | Higher)>(code);
      const float low = threshold_below<Bit, Higher / 2, Known>(code);
      return choose((code & Higher) != 0, high, low);
    }
  }
  RECKON_HOST_DEVICE static constexpr std::uint32_t encode(float value, NearestEven) {
    std::uint32_t code = value > threshold_below<8>(0) ? 8u : 0u;
    code |= value > threshold_below<4>(code) ? 4u : 0u;
    code |= value > threshold_below<2>(code) ? 2u : 0u;
    return code | (value > threshold_below<1>(code) ? 1u : 0u);
  }
  RECKON_HOST_DEVICE static constexpr std::uint32_t encode(float value, Stochastic round) {
    const float clamped = smaller(larger(value, -1.0f), 1.0f);
    std::uint32_t code = 0;
    for (std::uint32_t level = 1; level < 15; ++level) code += clamped >= decode(level) ? 1u : 0u;
    const float low = decode(code), high = decode(code + 1);
    return code + ((clamped - low) / (high - low) > round.threshold() ? 1u : 0u);
  }
};

// --- scales -------------------------------------------------------------------------------------------------------

enum class ScaleType : int { fp32, bf16, e8m0, e4m3 };  // in the order of ScaleFormat

RECKON_HOST_DEVICE constexpr int scale_bytes(ScaleType type) {
  return type == ScaleType::fp32 ? 4 : (type == ScaleType::bf16 ? 2 : 1);
}

RECKON_HOST_DEVICE constexpr std::uint32_t nan_scale(ScaleType type) {
  switch (type) {
    case ScaleType::fp32: return kNaN;
    case ScaleType::bf16: return kNaN >> 16;
    case ScaleType::e8m0: return 0xff;
    case ScaleType::e4m3: return 0x7f;
  }
  return 0;
}

/// Of a scale that is a number.
RECKON_HOST_DEVICE constexpr float decode_finite_scale(ScaleType type, std::uint32_t bits) {
  switch (type) {
    case ScaleType::fp32: return float_of(bits);
    case ScaleType::bf16: return float_of(bits << 16);
    case ScaleType::e8m0: return bits == 0 ? 0.5f * power_of_two(-126) : power_of_two(static_cast<int>(bits) - 127);
    case ScaleType::e4m3: return Fp8E4M3::decode(bits);
  }
  return 0;
}

RECKON_HOST_DEVICE constexpr float decode_scale(ScaleType type, std::uint32_t bits) {
  return bits == nan_scale(type) ? float_of(kNaN) : decode_finite_scale(type, bits);
}

/// The smallest scale of that type that is at least `value` (positive, finite, normal), or the largest there is.
RECKON_HOST_DEVICE constexpr std::uint32_t scale_at_least(ScaleType type, float value) {
  const std::uint32_t bits = bits_of(value);
  switch (type) {
    case ScaleType::fp32: return bits;
    case ScaleType::bf16: return bits > 0x7f7f0000u ? 0x7f7fu : (bits + 0xffffu) >> 16;
    case ScaleType::e8m0: return bits > 0x7f000000u ? 0xfeu : (bits + 0x7fffffu) >> 23;
    case ScaleType::e4m3: {
      const std::uint32_t nearest = Fp8E4M3::encode(value, NearestEven{});
      const bool too_small = (Fp8E4M3::decode(nearest) < value) & (nearest < 0x7eu);  // without a branch
      return nearest + (too_small ? 1u : 0u);
    }
  }
  return 0;
}

/// The largest minimum of that type (fp32 or bf16) that is at most `value`.
RECKON_HOST_DEVICE constexpr std::uint32_t minimum_at_most(ScaleType type, float value) {
  const std::uint32_t bits = bits_of(value);
  if (type == ScaleType::fp32) return bits;
  const bool negative = (bits >> 31) != 0;
  if (negative && (bits & kMagnitude) > 0x7f7f0000u) return 0xff7fu;  // no finite number below it
  return (negative ? bits + 0xffffu : bits) >> 16;
}

/// What a block stores beside its codes, and what encoding needs.
struct BlockScale {
  std::uint32_t scale_bits, minimum_bits;
  float scale, minimum;  // as decoded
  float inverse;         // 1 / scale, or 0: all codes are those of zero
};

struct BlockRange {
  std::uint32_t largest_magnitude;  // bits of the largest magnitude: not finite if any element is not
  float lowest, highest;            // affine only
};

/// Lowers the scale until the block's extreme value is finite. It is where no element reaches 2^125, because a scale is
/// less than twice what is needed.
template <class Format>
RECKON_HOST_DEVICE constexpr std::uint32_t finite_scale(ScaleType type, std::uint32_t bits, float factor, float minimum,
                                                        std::uint32_t largest_magnitude) {
  if (largest_magnitude < bits_of(power_of_two(125))) return bits;
  while (bits > 0 && !is_finite(decode_scale(type, bits) * factor * Format::kLargest + minimum)) --bits;
  return bits;
}

/// `factor` multiplies every scale of the tensor (NVFP4's tensor scale, else 1).
template <class Format>
RECKON_HOST_DEVICE constexpr BlockScale block_scale(BlockRange range, ScaleType type, float factor) {
  BlockScale block{0, 0, 0.0f, 0.0f, 0.0f};
  if (Format::kAffine && range.largest_magnitude < kInfinity) {
    block.minimum_bits = minimum_at_most(type, range.lowest + 0.0f);  // -0 becomes 0
    block.minimum = decode_scale(type, block.minimum_bits);
  }
  if (range.largest_magnitude >= kInfinity || (Format::kAffine && !is_finite(range.highest - block.minimum))) {
    block.scale_bits = nan_scale(type);
    return block;
  }
  float ideal = float_of(range.largest_magnitude) / Format::kLargest;
  if (Format::kAffine) ideal = (range.highest - block.minimum) / Format::kLargest;
  const float needed = ideal / factor;
  if (!(needed >= power_of_two(-126))) return block;
  block.scale_bits =
      finite_scale<Format>(type, scale_at_least(type, needed), factor, block.minimum, range.largest_magnitude);
  block.scale = decode_scale(type, block.scale_bits) * factor;
  block.inverse = bits_of(block.scale) < kSmallestNormal ? 0.0f : 1.0f / block.scale;
  return block;
}

/// MXFP4's scale (OCP Microscaling specification 1.0, section 6.3): 2^(floor(log2 largest) - 2); above 6 saturates.
RECKON_HOST_DEVICE constexpr BlockScale microscaling_block_scale(BlockRange range) {
  BlockScale block{0, 0, 0.0f, 0.0f, 0.0f};
  if (range.largest_magnitude >= kInfinity) {
    block.scale_bits = nan_scale(ScaleType::e8m0);
    return block;
  }
  const auto biased = static_cast<std::int32_t>(range.largest_magnitude >> 23) - 2;
  if (biased < 1) return block;
  block.scale_bits = static_cast<std::uint32_t>(biased);
  block.scale = power_of_two(biased - 127);
  block.inverse = power_of_two(127 - biased);
  return block;
}

/// NVFP4's scale of the whole tensor: its largest magnitude becomes 448 (the largest E4M3 scale) times 6.
RECKON_HOST_DEVICE constexpr float tensor_scale_of(float largest_magnitude) {
  const float scale = largest_magnitude / (448.0f * 6.0f);
  return bits_of(scale) < kSmallestNormal ? 1.0f : scale;
}

/// A value over its block's scale, above the minimum: what its code stands for. Zero where there is no scale.
template <bool Affine>
RECKON_HOST_DEVICE constexpr float scaled_value(float value, const BlockScale& block) {
  if (block.inverse == 0.0f) return 0.0f;
  return (Affine ? value - block.minimum : value) * block.inverse;
}

template <class Format, class Rounding>
RECKON_HOST_DEVICE constexpr std::uint32_t encode_element(float value, const BlockScale& block, Rounding round) {
  return Format::encode(scaled_value<Format::kAffine>(value, block), round);
}

template <class Format>
RECKON_HOST_DEVICE constexpr float decode_element(std::uint32_t code, float scale, float minimum) {
  const float value = Format::decode(code) * scale;
  return Format::kAffine ? value + minimum : value;
}

}  // namespace reckon::quant
