// The arithmetic of reductions for one element, the same lines on host and device: sums add in rank order, BF16 in FP32
// with one rounding at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/comm/operation.h"
#include "runtime/device/bfloat16.h"
#include "runtime/device/host_device.h"
#include "runtime/device/thread_place.h"

namespace reckon::reduction {

struct Sum {
  template <class Number>
  RECKON_HOST_DEVICE constexpr Number operator()(Number a, Number b) const {
    return a + b;
  }
};

struct Maximum {
  template <class Number>
  RECKON_HOST_DEVICE constexpr Number operator()(Number a, Number b) const {
    return a < b ? b : a;
  }
};

template <class Number>
struct Plain {  // stored as it is accumulated
  using Stored = Number;
  using Accumulated = Number;
  RECKON_HOST_DEVICE static constexpr Number load(Number value) { return value; }
  RECKON_HOST_DEVICE static constexpr Number store(Number value) { return value; }
};

struct Bf16 {
  using Stored = std::uint16_t;
  using Accumulated = float;
  RECKON_HOST_DEVICE static constexpr float load(std::uint16_t bits) { return float_of_bf16(bits); }
  RECKON_HOST_DEVICE static constexpr std::uint16_t store(float value) { return bf16_of(value); }
};

/// The ranks' contributions as they lie on a device: the own one where the caller has it, the others side by side.
struct DeviceSources {
  const std::byte* own = nullptr;
  const std::byte* received = nullptr;  // rank r's at received + r * stride; the own place there is not read
  std::int64_t stride = 0;              // bytes
  int own_rank = 0, ranks = 1;

  RECKON_HOST_DEVICE constexpr const std::byte* source(int rank) const {
    return rank == own_rank ? own : received + rank * stride;
  }
};

/// The ranks' contributions at any addresses of one device.
struct SourceTable {
  static constexpr int kMost = 64;
  const std::byte* at[kMost] = {};
  int ranks = 0;

  RECKON_HOST_DEVICE constexpr const std::byte* source(int rank) const { return at[rank]; }
};
/// Throws ConfigError for more ranks than a table holds.
SourceTable source_table(std::span<const void* const> sources);

/// The elements of one thread. `result` may be the own contribution: each element is read before it is written.
template <class Format, class Combine, class Sources>
RECKON_HOST_DEVICE void reduce_elements(const Sources& sources, std::int64_t count, std::byte* result,
                                        ThreadPlace place) {
  using Stored = typename Format::Stored;
  for (std::int64_t i = place.index(); i < count; i += place.count()) {
    auto sum = Format::load(reinterpret_cast<const Stored*>(sources.source(0))[i]);
    for (int rank = 1; rank < sources.ranks; ++rank)
      sum = Combine{}(sum, Format::load(reinterpret_cast<const Stored*>(sources.source(rank))[i]));
    reinterpret_cast<Stored*>(result)[i] = Format::store(sum);
  }
}

/// Calls `action(Format{}, Combine{})` for an element type that can be reduced; false for raw bytes.
template <class Action>
bool with_reduction(ElementType type, Reduction reduction, Action action) {
  const auto combine = [&](auto format) {
    if (reduction == Reduction::sum) action(format, Sum{});
    else action(format, Maximum{});
    return true;
  };
  switch (type) {
    case ElementType::fp64: return combine(Plain<double>{});
    case ElementType::fp32: return combine(Plain<float>{});
    case ElementType::bf16: return combine(Bf16{});
    case ElementType::int64: return combine(Plain<std::int64_t>{});
    case ElementType::int32: return combine(Plain<std::int32_t>{});
    case ElementType::uint8: return false;
  }
  return false;
}

}  // namespace reckon::reduction
