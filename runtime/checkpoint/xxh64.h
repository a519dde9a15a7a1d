// XXH64 of a stream of bytes, seed 0: the value that `xxhsum -H1 FILE` prints. It finds damage, not forgery.
// Specification: xxhash.com, doc/xxhash_spec.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace reckon {

class Xxh64 {
 public:
  void update(std::span<const char> bytes);
  std::uint64_t digest() const;

 private:
  void take_stripe(const char* stripe);

  std::array<std::uint64_t, 4> lanes_ = {0x60EA27EEADC0B5D6, 0xC2B2AE3D27D4EB4F, 0, 0x61C8864E7A143579};
  std::array<char, 32> left_{};  // bytes that do not fill a stripe yet
  std::uint64_t total_ = 0;
};

}  // namespace reckon
