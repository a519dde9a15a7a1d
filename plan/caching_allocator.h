// Replay of a caching device allocator: how many bytes a sequence of allocations and frees reserves from the device.
// The rules are PyTorch's (c10/cuda/CUDACachingAllocator.cpp, default settings): requests are rounded to 512 B; up to
// 1 MiB they come from 2 MiB segments, up to 10 MiB from 20 MiB segments, above from a segment of their own size
// rounded to 2 MiB; best fit among free blocks of the same stream and pool; what is left of a block is split off;
// neighbours merge when freed; cached whole segments go back to the device when it is full. Nothing here allocates
// device memory.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "plan/units.h"

namespace reckon {

class CachingAllocator {
 public:
  using Block = int;  // names one allocation until it is freed

  /// `limit`: bytes the device can give out in segments.
  explicit CachingAllocator(Bytes limit = Bytes(std::numeric_limits<std::int64_t>::max()));

  /// A block of at least `bytes` (0 takes the smallest block), or nothing when the device is full even after all cached
  /// segments were returned. Streams keep apart: a block freed on one is reused only on it.
  std::optional<Block> allocate(Bytes bytes, int stream = 0);
  /// Throws std::logic_error for a block that is not allocated.
  void free(Block block);

  Bytes allocated() const { return Bytes(allocated_); }  // rounded sizes of live blocks
  Bytes reserved() const { return Bytes(reserved_); }    // sizes of segments held
  Bytes peak_allocated() const { return Bytes(peak_allocated_); }
  Bytes peak_reserved() const { return Bytes(peak_reserved_); }
  int segments() const { return segments_; }

  /// Size that a request takes inside a segment, and size of the segment a request needs when no block fits.
  static Bytes rounded(Bytes bytes);
  static Bytes segment_size(Bytes rounded_bytes);

 private:
  struct Node {
    std::int64_t address = 0, size = 0;
    int stream = 0;
    bool small = false, used = false;
    int previous = -1, next = -1;  // neighbours in the same segment
  };
  struct Key {  // order of the search: stream, then size, then address
    int stream;
    std::int64_t size, address;
    int node;
    bool operator<(const Key& other) const;
  };
  using Pool = std::vector<Key>;  // free blocks in order; short enough that moving beats a tree's nodes

  int new_node(Node node);
  Pool& pool_of(const Node& node) { return node.small ? small_pool_ : large_pool_; }
  Key key_of(int index) const;
  int take_free_block(std::int64_t size, int stream, bool small);
  int reserve_segment(std::int64_t size, int stream, bool small);
  void split(int index, std::int64_t size);
  void absorb(int index, int neighbour);
  void release_cached_segments(Pool& pool);

  std::int64_t limit_, allocated_ = 0, reserved_ = 0, peak_allocated_ = 0, peak_reserved_ = 0;
  std::int64_t next_address_ = 0;
  int segments_ = 0;
  std::vector<Node> nodes_;
  std::vector<int> unused_nodes_;
  Pool small_pool_, large_pool_;
};

}  // namespace reckon
