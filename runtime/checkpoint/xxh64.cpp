#include "runtime/checkpoint/xxh64.h"

#include <algorithm>
#include <bit>

#include "plan/little_endian.h"

namespace reckon {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F, kPrime3 = 0x165667B19E3779F9,
                        kPrime4 = 0x85EBCA77C2B2AE63, kPrime5 = 0x27D4EB2F165667C5;

std::uint64_t round(std::uint64_t lane, std::uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

}  // namespace

void Xxh64::take_stripe(const char* stripe) {
  for (std::size_t i = 0; i < 4; ++i) lanes_[i] = round(lanes_[i], read_little_endian<std::uint64_t>(stripe + 8 * i));
}

void Xxh64::update(std::span<const char> bytes) {
  const std::size_t waiting = total_ % left_.size();
  total_ += bytes.size();
  if (waiting > 0) {
    const std::size_t taken = std::min(bytes.size(), left_.size() - waiting);
    std::copy_n(bytes.begin(), taken, left_.begin() + static_cast<std::ptrdiff_t>(waiting));
    bytes = bytes.subspan(taken);
    if (waiting + taken < left_.size()) return;
    take_stripe(left_.data());
  }
  for (; bytes.size() >= left_.size(); bytes = bytes.subspan(left_.size())) take_stripe(bytes.data());
  std::ranges::copy(bytes, left_.begin());
}

std::uint64_t Xxh64::digest() const {
  std::uint64_t hash = kPrime5;
  if (total_ >= left_.size()) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = merge(hash, lane);
  }
  hash += total_;
  const char* next = left_.data();
  std::size_t count = total_ % left_.size();
  for (; count >= 8; count -= 8, next += 8)
    hash = std::rotl(hash ^ round(0, read_little_endian<std::uint64_t>(next)), 27) * kPrime1 + kPrime4;
  if (count >= 4) {
    hash = std::rotl(hash ^ read_little_endian<std::uint32_t>(next) * kPrime1, 23) * kPrime2 + kPrime3;
    next += 4;
    count -= 4;
  }
  for (; count > 0; --count, ++next) hash = std::rotl(hash ^ static_cast<unsigned char>(*next) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace reckon
