#include "runtime/comm/thread_memory.h"

#include <algorithm>
#include <new>

namespace reckon {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

std::uint64_t ThreadMemory::create_block(std::size_t bytes) {
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* memory = static_cast<std::byte*>(::operator new(rounded, std::align_val_t(kAlignment)));
  std::fill_n(memory, rounded, std::byte{0});
  Block block(memory, [](std::byte* bytes_) { ::operator delete(bytes_, std::align_val_t(kAlignment)); });
  return reinterpret_cast<std::uint64_t>(new Block(std::move(block)));
}

ThreadMemory::Block ThreadMemory::attach_block(std::uint64_t token, std::size_t) {
  return *reinterpret_cast<Block*>(token);
}

void ThreadMemory::forget_block(std::uint64_t token) {
  delete reinterpret_cast<Block*>(token);
}

}  // namespace reckon
