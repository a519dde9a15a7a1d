// BF16 numbers as their bits, for host and device. Inlined into loops that are compiled for several instruction sets.
#pragma once

#include <cstdint>

#include "runtime/device/host_device.h"

namespace reckon {

[[gnu::always_inline]] RECKON_HOST_DEVICE constexpr float float_of_bf16(std::uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

/// To nearest even; every NaN becomes the quiet one.
[[gnu::always_inline]] RECKON_HOST_DEVICE constexpr std::uint16_t bf16_of(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>(value != value ? 0x7fc0u : rounded);
}

}  // namespace reckon
