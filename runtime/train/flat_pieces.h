// How the flat buffers are cut for communication: pieces of at most one bucket, from the end to the start (the order in
// which backward finishes them), and each ZeRO shard's share of a piece.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/parameter_layout.h"
#include "plan/units.h"

namespace reckon {

struct FlatPiece {
  std::int64_t first = 0, count = 0;
  std::vector<std::int64_t> shard_counts;  // elements of each shard inside; their sum is count
};

/// `bucket` is in bytes of `element_size`.
std::vector<FlatPiece> flat_pieces(const ParameterLayout& layout, Bytes bucket, std::int64_t element_size);

}  // namespace reckon
