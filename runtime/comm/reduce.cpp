// Works block by block through an accumulator that stays in the first-level cache; the inner loops vectorise.
#include "runtime/comm/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>

namespace reckon {
namespace {

constexpr std::int64_t kBlock = 2048;  // elements of the accumulator: 8 KiB in FP32

struct Sum {
  template <class Number>
  Number operator()(Number a, Number b) const {
    return a + b;
  }
};

struct Maximum {
  template <class Number>
  Number operator()(Number a, Number b) const {
    return a < b ? b : a;
  }
};

template <class Number>
struct Plain {  // stored as it is accumulated
  using Stored = Number;
  using Accumulated = Number;
  static Number load(Number value) { return value; }
  static Number store(Number value) { return value; }
};

struct Bf16 {
  using Stored = std::uint16_t;
  using Accumulated = float;
  static float load(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static std::uint16_t store(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t quiet_nan = (bits >> 16) | 0x40u;
    return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
  }
};

template <class Format, class Combine>
void reduce(std::span<const void* const> sources, std::int64_t count, void* result, Combine combine) {
  using Stored = typename Format::Stored;
  std::array<typename Format::Accumulated, kBlock> sums;
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t length = std::min(kBlock, count - start);
    const Stored* first = static_cast<const Stored*>(sources[0]) + start;
    for (std::int64_t i = 0; i < length; ++i) sums[static_cast<std::size_t>(i)] = Format::load(first[i]);
    for (const void* source : sources.subspan(1)) {
      const Stored* next = static_cast<const Stored*>(source) + start;
      for (std::int64_t i = 0; i < length; ++i) {
        auto& sum = sums[static_cast<std::size_t>(i)];
        sum = combine(sum, Format::load(next[i]));
      }
    }
    Stored* out = static_cast<Stored*>(result) + start;
    for (std::int64_t i = 0; i < length; ++i) out[i] = Format::store(sums[static_cast<std::size_t>(i)]);
  }
}

template <class Format>
void reduce(std::span<const void* const> sources, Reduction reduction, std::int64_t count, void* result) {
  if (reduction == Reduction::sum) return reduce<Format>(sources, count, result, Sum{});
  reduce<Format>(sources, count, result, Maximum{});
}

}  // namespace

bool can_reduce(ElementType type) {
  return type != ElementType::uint8;
}

void reduce_in_rank_order(std::span<const void* const> sources, ElementType type, Reduction reduction,
                          std::int64_t count, void* result) {
  switch (type) {
    case ElementType::fp64: return reduce<Plain<double>>(sources, reduction, count, result);
    case ElementType::fp32: return reduce<Plain<float>>(sources, reduction, count, result);
    case ElementType::bf16: return reduce<Bf16>(sources, reduction, count, result);
    case ElementType::int64: return reduce<Plain<std::int64_t>>(sources, reduction, count, result);
    case ElementType::int32: return reduce<Plain<std::int32_t>>(sources, reduction, count, result);
    case ElementType::uint8: break;
  }
  throw std::logic_error("raw bytes cannot be reduced");
}

float bf16_to_float(std::uint16_t bits) {
  return Bf16::load(bits);
}

std::uint16_t float_to_bf16(float value) {
  return Bf16::store(value);
}

}  // namespace reckon
