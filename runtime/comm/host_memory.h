// How the ranks of one host reach each other's memory: blocks that all of them map, and one rank's private buffers read
// by another. Ranks are threads of one process, or processes (shared segments, process_vm_readv). Buffers of threads
// may also lie on a device that they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "runtime/comm/reduce.h"

namespace reckon {

class HostMemory {
 public:
  virtual ~HostMemory() = default;

  /// A new zero-filled block; the token lets other ranks attach to it until forget_block().
  virtual std::uint64_t create_block(std::size_t bytes) = 0;
  virtual std::shared_ptr<std::byte> attach_block(std::uint64_t token, std::size_t bytes) = 0;
  /// Removes the name; attached ranks keep the block. Nothing is left behind when they end, however they end.
  virtual void forget_block(std::uint64_t token) = 0;

  /// `bytes` at `address` of rank `owner`: the address itself where it can be read directly, else a copy in `scratch`
  /// (may be the final destination). Throws RunError when the rank has gone.
  virtual const void* look(int owner, std::uint64_t address, std::int64_t bytes, void* scratch) = 0;

  /// False once the rank's process has ended.
  virtual bool alive(int owner) = 0;

  /// True for an address on a device. Such buffers are only touched by copy() and reduce(), whole and where they are.
  virtual bool on_device(const void*) const { return false; }
  virtual void copy(void* to, const void* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  /// reduce_in_rank_order for addresses that are all on the device, or all not.
  virtual void reduce(std::span<const void* const> sources, ElementType type, Reduction reduction, std::int64_t count,
                      void* result) {
    reduce_in_rank_order(sources, type, reduction, count, result);
  }
};

/// Ranks are threads of this process; in a build with CUDA their buffers may lie on one device
/// (thread_memory_cuda.cpp).
std::shared_ptr<HostMemory> thread_memory();

/// Ranks are processes of this host, `process_ids[rank]`.
std::shared_ptr<HostMemory> process_memory(std::vector<int> process_ids);

}  // namespace reckon
