#include "runtime/train/flat_pieces.h"

#include <algorithm>

namespace reckon {

std::vector<FlatPiece> flat_pieces(const ParameterLayout& layout, Bytes bucket, std::int64_t element_size) {
  const std::int64_t most = std::max<std::int64_t>(1, bucket.value / element_size);
  std::vector<FlatPiece> pieces;
  for (std::int64_t last = layout.padded_elements; last > 0;) {
    const std::int64_t first = std::max<std::int64_t>(0, last - most);
    FlatPiece piece{first, last - first, {}};
    for (std::int64_t shard = 0; shard < layout.shards; ++shard) {
      const std::int64_t begin = std::clamp(shard * layout.shard_elements, first, last);
      const std::int64_t end = std::clamp((shard + 1) * layout.shard_elements, first, last);
      piece.shard_counts.push_back(end - begin);
    }
    pieces.push_back(std::move(piece));
    last = first;
  }
  return pieces;
}

}  // namespace reckon
