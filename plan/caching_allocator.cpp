#include "plan/caching_allocator.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

namespace reckon {
namespace {

constexpr std::int64_t kMiBytes = std::int64_t{1} << 20;
constexpr std::int64_t kSmallestBlock = 512;
constexpr std::int64_t kSmallRequest = kMiBytes;  // largest request of the small pool
constexpr std::int64_t kSmallSegment = 2 * kMiBytes;
constexpr std::int64_t kOwnSegment = 10 * kMiBytes;  // from here a request gets a segment of its own size
constexpr std::int64_t kLargeSegment = 20 * kMiBytes;
constexpr std::int64_t kSegmentRounding = 2 * kMiBytes;

/// `keys` is sorted; the key is in it or not, as the name says.
template <class Key>
void insert(std::vector<Key>& keys, const Key& key) {
  keys.insert(std::lower_bound(keys.begin(), keys.end(), key), key);
}
template <class Key>
void erase(std::vector<Key>& keys, const Key& key) {
  keys.erase(std::lower_bound(keys.begin(), keys.end(), key));
}

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

CachingAllocator::CachingAllocator(Bytes limit) : limit_(limit.value) {}

bool CachingAllocator::Key::operator<(const Key& other) const {
  return std::tie(stream, size, address) < std::tie(other.stream, other.size, other.address);
}

Bytes CachingAllocator::rounded(Bytes bytes) {
  return Bytes(std::max(kSmallestBlock, round_up(bytes.value, kSmallestBlock)));
}

Bytes CachingAllocator::segment_size(Bytes rounded_bytes) {
  if (rounded_bytes.value <= kSmallRequest) return Bytes(kSmallSegment);
  if (rounded_bytes.value < kOwnSegment) return Bytes(kLargeSegment);
  return Bytes(round_up(rounded_bytes.value, kSegmentRounding));
}

std::optional<CachingAllocator::Block> CachingAllocator::allocate(Bytes bytes, int stream) {
  const std::int64_t size = rounded(bytes).value;
  const bool small = size <= kSmallRequest;
  int block = take_free_block(size, stream, small);
  if (block < 0) block = reserve_segment(size, stream, small);
  if (block < 0) return std::nullopt;
  // A small block is split down to the smallest piece; a large one only when more than 1 MiB would be left.
  const std::int64_t rest = nodes_[block].size - size;
  if (small ? rest >= kSmallestBlock : rest > kSmallRequest) split(block, size);
  nodes_[block].used = true;
  allocated_ += nodes_[block].size;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return block;
}

void CachingAllocator::free(Block block) {
  if (block < 0 || block >= static_cast<int>(nodes_.size()) || !nodes_[block].used)
    throw std::logic_error("CachingAllocator::free: this block is not allocated");
  nodes_[block].used = false;
  allocated_ -= nodes_[block].size;
  absorb(block, nodes_[block].previous);
  absorb(block, nodes_[block].next);
  insert(pool_of(nodes_[block]), key_of(block));
}

int CachingAllocator::new_node(Node node) {
  if (unused_nodes_.empty()) {
    nodes_.push_back(node);
    return static_cast<int>(nodes_.size()) - 1;
  }
  const int index = unused_nodes_.back();
  unused_nodes_.pop_back();
  nodes_[index] = node;
  return index;
}

CachingAllocator::Key CachingAllocator::key_of(int index) const {
  const Node& node = nodes_[index];
  return {node.stream, node.size, node.address, index};
}

int CachingAllocator::take_free_block(std::int64_t size, int stream, bool small) {
  Pool& pool = small ? small_pool_ : large_pool_;
  const auto found = std::lower_bound(pool.begin(), pool.end(), Key{stream, size, -1, -1});
  if (found == pool.end() || found->stream != stream) return -1;
  const int block = found->node;
  pool.erase(found);
  return block;
}

int CachingAllocator::reserve_segment(std::int64_t size, int stream, bool small) {
  const std::int64_t bytes = segment_size(Bytes(size)).value;
  if (bytes > limit_ - reserved_) {
    release_cached_segments(large_pool_);
    release_cached_segments(small_pool_);
    if (bytes > limit_ - reserved_) return -1;
  }
  const int block = new_node({next_address_, bytes, stream, small, false, -1, -1});
  next_address_ += bytes;  // the device hands out rising addresses; they only break ties
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  ++segments_;
  return block;
}

/// Cuts `index` to `size`; what is left becomes a free block behind it.
void CachingAllocator::split(int index, std::int64_t size) {
  const Node whole = nodes_[index];
  const int rest =
      new_node({whole.address + size, whole.size - size, whole.stream, whole.small, false, index, whole.next});
  nodes_[index].size = size;
  nodes_[index].next = rest;
  if (whole.next >= 0) nodes_[whole.next].previous = rest;
  insert(pool_of(whole), key_of(rest));
}

/// Merges `neighbour` into `index` if it exists and is free. `index` itself is in no pool.
void CachingAllocator::absorb(int index, int neighbour) {
  if (neighbour < 0 || nodes_[neighbour].used) return;
  erase(pool_of(nodes_[neighbour]), key_of(neighbour));
  const Node gone = nodes_[neighbour];
  Node& block = nodes_[index];
  if (gone.address < block.address) {
    block.address = gone.address;
    block.previous = gone.previous;
    if (gone.previous >= 0) nodes_[gone.previous].next = index;
  } else {
    block.next = gone.next;
    if (gone.next >= 0) nodes_[gone.next].previous = index;
  }
  block.size += gone.size;
  unused_nodes_.push_back(neighbour);
}

void CachingAllocator::release_cached_segments(Pool& pool) {
  for (auto entry = pool.begin(); entry != pool.end();) {
    const Node& node = nodes_[entry->node];
    if (node.previous >= 0 || node.next >= 0) {  // part of a segment that is in use
      ++entry;
      continue;
    }
    reserved_ -= node.size;
    --segments_;
    unused_nodes_.push_back(entry->node);
    entry = pool.erase(entry);
  }
}

}  // namespace reckon
