#include "runtime/train/device/device_memory_cuda.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/train/memory_account.h"

namespace reckon {
namespace {

using c10::cuda::CUDACachingAllocator::TraceEntry;

thread_local std::exception_ptr broken_limit;  // of this thread's account

struct Block {
  MemoryAccount* account;
  std::int64_t bytes;
  MemoryCategory category;
};

class DeviceBlocks {
 public:
  /// Called with the allocator's lock held, by the thread that allocates or frees.
  void note(const TraceEntry& entry) {
    const std::lock_guard lock(mutex_);
    const Place place{entry.device_, entry.addr_};
    if (entry.action_ == TraceEntry::ALLOC) {
      const Block block{&AccountScope::current(), static_cast<std::int64_t>(entry.size_), CategoryScope::current()};
      try {
        block.account->book(block.category, block.bytes);
        blocks_[place] = block;
      } catch (...) {
        broken_limit = std::current_exception();
      }
    } else if (entry.action_ == TraceEntry::FREE_REQUESTED) {
      const auto found = blocks_.find(place);
      if (found == blocks_.end()) return;  // from before the count
      found->second.account->release(found->second.category, found->second.bytes);
      blocks_.erase(found);
    }
  }
  void recategorize(int device, std::size_t address, MemoryCategory category) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find({static_cast<c10::DeviceIndex>(device), address});
    if (found == blocks_.end() || found->second.category == category) return;
    found->second.account->move(found->second.category, category, found->second.bytes);
    found->second.category = category;
  }

 private:
  using Place = std::pair<c10::DeviceIndex, std::size_t>;

  std::mutex mutex_;
  std::map<Place, Block> blocks_;
};

DeviceBlocks& all_blocks() {
  static auto* blocks = new DeviceBlocks;  // never destroyed: blocks are freed until the process ends
  return *blocks;
}

}  // namespace

void count_device_memory() {
  static const bool counts = [] {
    c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(
        [](const TraceEntry& entry) { all_blocks().note(entry); });
    return true;
  }();
  static_cast<void>(counts);
}

void throw_broken_limit() {
  if (broken_limit) std::rethrow_exception(std::exchange(broken_limit, nullptr));
}

void recategorize_device_block(int device, const void* address, MemoryCategory category) {
  all_blocks().recategorize(device, reinterpret_cast<std::size_t>(address), category);
}

}  // namespace reckon
