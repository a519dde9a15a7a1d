#include "runtime/train/reduce/reduction_parts.h"

#include <numeric>
#include <stdexcept>
#include <utility>

namespace reckon {

ReductionParts::ReductionParts(Storage wire, std::vector<std::int64_t> part_elements)
    : elements(std::move(part_elements)) {
  std::int64_t offset = 0;
  for (const std::int64_t part : elements) {
    offsets.push_back(offset);
    offset += part;
    bytes.push_back(storage_bytes(wire, part).value);
  }
}

BufferView bytes_view(std::span<std::byte> bytes) {
  return {bytes.data(), static_cast<std::int64_t>(bytes.size()), ElementType::uint8};
}

std::int64_t sum_of(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

void require_length(std::size_t found, std::int64_t wanted) {
  if (static_cast<std::int64_t>(found) != wanted)
    throw std::logic_error("the buffer does not have the length of its parts");
}

}  // namespace reckon
