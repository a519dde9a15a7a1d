// What the threads of a kernel do and which elements are theirs, apart from launching and exchanging: shared by
// quantize_cuda.cu and by the tests, which play every thread of a launch on the host, in loops over grid, block and
// warp.
//
// A quantization block is worked on by `lanes` lanes; each takes groups of eight elements, because eight codes of N
// bits are N whole bytes that no other lane writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/thread_place.h"
#include "runtime/quant/quant_core.h"

namespace reckon::quant {

constexpr int kGroup = 8;
constexpr int kWarp = 32;

/// A tensor and its quantized form, as kernels see them.
template <class Value>
struct KernelTensor {
  Value* values;
  std::int64_t elements;
  std::byte* bytes;                                    // quantized
  std::int64_t tensor_scale, scales, minimums, codes;  // offsets in bytes
  std::int64_t blocks;
  int block;  // elements
  ScaleType scale_type;
  bool microscaling, has_tensor_scale;
  bool stochastic;
  std::uint64_t seed, first_index;
};

/// Lanes per quantization block: a power of two, at most a warp, at most one per group.
RECKON_HOST_DEVICE constexpr int lanes_per_block(int block) {
  int lanes = 1;
  while (lanes * 2 <= kWarp && lanes * 2 * kGroup <= block) lanes *= 2;
  return lanes;
}

RECKON_HOST_DEVICE constexpr float load_value(float value) {
  return value;
}
RECKON_HOST_DEVICE constexpr float load_value(std::uint16_t bits) {
  return float_of_bf16(bits);
}
RECKON_HOST_DEVICE constexpr void store_value(float& to, float value) {
  to = value;
}
RECKON_HOST_DEVICE constexpr void store_value(std::uint16_t& to, float value) {
  to = bf16_of(value);
}

RECKON_HOST_DEVICE constexpr BlockRange empty_range() {
  return {0u, float_of(kInfinity), float_of(kInfinity | 0x80000000u)};
}
RECKON_HOST_DEVICE constexpr BlockRange merge(BlockRange a, BlockRange b) {
  return {a.largest_magnitude < b.largest_magnitude ? b.largest_magnitude : a.largest_magnitude,
          smaller(a.lowest, b.lowest), larger(a.highest, b.highest)};
}

/// Elements [first, last) of a group, clipped to the block and the tensor.
struct Group {
  std::int64_t first, last;
};
template <class Value>
RECKON_HOST_DEVICE constexpr Group group_of(const KernelTensor<Value>& tensor, std::int64_t block, int group) {
  const std::int64_t end = (block + 1) * tensor.block < tensor.elements ? (block + 1) * tensor.block : tensor.elements;
  const std::int64_t first = block * tensor.block + group * kGroup;
  return {first, first + kGroup < end ? first + kGroup : end};
}

/// Range of the elements of one lane.
template <class Value>
RECKON_HOST_DEVICE BlockRange lane_range(const KernelTensor<Value>& tensor, std::int64_t block, int lane, int lanes) {
  BlockRange range = empty_range();
  for (int group = lane; group * kGroup < tensor.block; group += lanes) {
    const Group part = group_of(tensor, block, group);
    for (std::int64_t i = part.first; i < part.last; ++i) {
      const float value = load_value(tensor.values[i]);
      range = merge(range, {bits_of(value) & kMagnitude, value, value});
    }
  }
  return range;
}

template <class Value>
RECKON_HOST_DEVICE std::uint32_t lane_largest_finite(const KernelTensor<Value>& tensor, std::int64_t lane,
                                                     std::int64_t lanes) {
  std::uint32_t largest = 0;
  for (std::int64_t i = lane; i < tensor.elements; i += lanes) {
    const std::uint32_t magnitude = bits_of(load_value(tensor.values[i])) & kMagnitude;
    if (magnitude < kInfinity && magnitude > largest) largest = magnitude;
  }
  return largest;
}

RECKON_HOST_DEVICE inline void put_bytes(std::byte* to, std::uint64_t bits, int bytes) {
  for (int i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(bits >> 8 * i & 0xffu);
}
RECKON_HOST_DEVICE inline std::uint64_t get_bytes(const std::byte* from, int bytes) {
  std::uint64_t bits = 0;
  for (int i = 0; i < bytes; ++i) bits |= static_cast<std::uint64_t>(from[i]) << 8 * i;
  return bits;
}

template <class Value>
RECKON_HOST_DEVICE float tensor_factor(const KernelTensor<Value>& tensor) {
  if (!tensor.has_tensor_scale) return 1.0f;
  return float_of(static_cast<std::uint32_t>(get_bytes(tensor.bytes + tensor.tensor_scale, 4)));
}

/// The codes of one lane's groups; lane 0 also stores scale and minimum.
template <class Format, class Value>
RECKON_HOST_DEVICE void lane_encode(const KernelTensor<Value>& tensor, std::int64_t block, int lane, int lanes,
                                    BlockRange range) {
  const BlockScale scale = tensor.microscaling ? microscaling_block_scale(range)
                                               : block_scale<Format>(range, tensor.scale_type, tensor_factor(tensor));
  const int width = scale_bytes(tensor.scale_type);
  if (lane == 0) {
    put_bytes(tensor.bytes + tensor.scales + block * width, scale.scale_bits, width);
    if (Format::kAffine) put_bytes(tensor.bytes + tensor.minimums + block * width, scale.minimum_bits, width);
  }
  for (int group = lane; group * kGroup < tensor.block; group += lanes) {
    const Group part = group_of(tensor, block, group);
    if (part.first >= part.last) return;
    std::uint64_t bits = 0;
    for (std::int64_t i = part.first; i < part.last; ++i) {
      const float value = load_value(tensor.values[i]);
      const auto index = tensor.first_index + static_cast<std::uint64_t>(i);
      const std::uint32_t code = tensor.stochastic
                                     ? encode_element<Format>(value, scale, Stochastic{random_bits(tensor.seed, index)})
                                     : encode_element<Format>(value, scale, NearestEven{});
      bits |= static_cast<std::uint64_t>(code) << (i - part.first) * Format::kBits;
    }
    const auto bytes = static_cast<int>(((part.last - part.first) * Format::kBits + 7) / 8);
    put_bytes(tensor.bytes + tensor.codes + part.first * Format::kBits / 8, bits, bytes);
  }
}

/// Decodes the group of eight elements that starts at element 8 * `group` of the tensor.
template <class Format, bool Add, class Value>
RECKON_HOST_DEVICE void decode_group(const KernelTensor<Value>& tensor, std::int64_t group) {
  const std::int64_t first = group * kGroup, block = first / tensor.block;
  const std::int64_t last = first + kGroup < tensor.elements ? first + kGroup : tensor.elements;
  const int width = scale_bytes(tensor.scale_type);
  const auto stored = [&](std::int64_t table) {
    return decode_scale(tensor.scale_type,
                        static_cast<std::uint32_t>(get_bytes(tensor.bytes + table + block * width, width)));
  };
  const float scale = stored(tensor.scales) * tensor_factor(tensor);
  const float minimum = Format::kAffine ? stored(tensor.minimums) : 0.0f;
  const auto bytes = static_cast<int>(((last - first) * Format::kBits + 7) / 8);
  std::uint64_t bits = get_bytes(tensor.bytes + tensor.codes + group * Format::kBits, bytes);
  for (std::int64_t i = first; i < last; ++i, bits >>= Format::kBits) {
    const auto code = static_cast<std::uint32_t>(bits & ((1u << Format::kBits) - 1u));
    const float value = decode_element<Format>(code, scale, minimum);
    store_value(tensor.values[i], Add ? load_value(tensor.values[i]) + value : value);
  }
}

// --- launches: which thread does what -----------------------------------------------------------------------------

/// A warp works on kWarp / lanes neighbouring blocks at a time, in rounds.
struct LanePlace {
  std::int64_t block;
  int lane;
};
RECKON_HOST_DEVICE constexpr LanePlace lane_place(ThreadPlace place, int lanes, std::int64_t round) {
  const std::int64_t warp = place.index() / kWarp + round * (place.count() / kWarp);
  const int thread = place.thread % kWarp;
  return {warp * (kWarp / lanes) + thread / lanes, thread % lanes};
}

/// Rounds after which the last block is done: the same for all threads, so that warps stay whole.
RECKON_HOST_DEVICE constexpr std::int64_t rounds_of(std::int64_t blocks, int lanes, std::int64_t threads) {
  const std::int64_t a_round = threads / kWarp * (kWarp / lanes);
  return (blocks + a_round - 1) / a_round;
}

/// The groups of one thread of a launch that decodes.
template <class Format, bool Add, class Value>
RECKON_HOST_DEVICE void decode_groups(const KernelTensor<Value>& tensor, ThreadPlace place) {
  const std::int64_t groups = (tensor.elements + kGroup - 1) / kGroup;
  for (std::int64_t group = place.index(); group < groups; group += place.count())
    decode_group<Format, Add>(tensor, group);
}

/// Quantized tensors of one shape side by side: what the ranks of a reduction sent.
struct QuantizedParts {
  std::byte* first;
  std::int64_t stride;  // bytes
  int count;
  bool add_first;  // sums[i] += ..., not = ...
};

/// sums[i] = (sums[i] +) the parts' decoded values in order, for one lane's groups of a block: `sums.values` are read
/// and written by this lane alone.
template <class Format>
RECKON_HOST_DEVICE void lane_sum(const QuantizedParts& parts, KernelTensor<float> sums, std::int64_t block, int lane,
                                 int lanes) {
  for (int group = lane; group * kGroup < sums.block; group += lanes) {
    const std::int64_t of_tensor = (block * sums.block) / kGroup + group;
    if (of_tensor * kGroup >= sums.elements) return;
    for (int part = 0; part < parts.count; ++part) {
      sums.bytes = parts.first + part * parts.stride;
      if (part == 0 && !parts.add_first) decode_group<Format, false>(sums, of_tensor);
      else decode_group<Format, true>(sums, of_tensor);
    }
  }
}

/// The kernel's view of a tensor; `Layout` and the arguments are those of quantize.h.
template <class Value, class Layout>
KernelTensor<Value> kernel_tensor(Value* values, std::int64_t elements, std::byte* bytes, const Layout& layout,
                                  int block, ScaleType type) {
  return {values,
          elements,
          bytes,
          layout.tensor_scale,
          layout.scales,
          layout.minimums,
          layout.codes,
          layout.blocks,
          block,
          type,
          false,
          false,
          false,
          0,
          0};
}

}  // namespace reckon::quant
