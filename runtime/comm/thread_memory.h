// Blocks and buffers of ranks that are threads of this process.
#pragma once

#include "runtime/comm/host_memory.h"

namespace reckon {

class ThreadMemory : public HostMemory {
 public:
  using Block = std::shared_ptr<std::byte>;

  std::uint64_t create_block(std::size_t bytes) override;
  Block attach_block(std::uint64_t token, std::size_t bytes) override;
  void forget_block(std::uint64_t token) override;
  const void* look(int, std::uint64_t address, std::int64_t, void*) override {
    return reinterpret_cast<const void*>(address);
  }
  bool alive(int) override { return true; }
};

}  // namespace reckon
