// What the reductions of quantized gradients share: how a buffer is cut into parts, and how its bytes are handed on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/number_format.h"
#include "runtime/comm/communicator.h"

namespace reckon {

/// Keeps the random numbers of ranks, and of nodes, apart.
inline constexpr std::uint64_t kRankSeed = 0x9e3779b97f4a7c15u;

/// Parts of a buffer, in rank order.
struct ReductionParts {
  ReductionParts(Storage wire, std::vector<std::int64_t> part_elements);

  std::vector<std::int64_t> elements, offsets;  // offsets in elements
  std::vector<std::int64_t> bytes;              // quantized
};

BufferView bytes_view(std::span<std::byte> bytes);
std::int64_t sum_of(const std::vector<std::int64_t>& counts);
/// Throws std::logic_error unless `found` elements are `wanted`.
void require_length(std::size_t found, std::int64_t wanted);

}  // namespace reckon
