#include "runtime/train/counting_allocator.h"

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/train/device/device_rank.h"

namespace reckon {
namespace {

constexpr std::size_t kAlignment = 64;

/// In front of every block; remembers what was booked.
struct alignas(kAlignment) Header {
  MemoryAccount* account;
  std::int64_t bytes;
  MemoryCategory category;
};

Header* header_of(void* data) {
  return static_cast<Header*>(data) - 1;
}

void free_block(void* data) {
  if (data == nullptr) return;
  Header* header = header_of(data);
  header->account->release(header->category, header->bytes);
  std::free(header);
}

void* allocate_block(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  MemoryAccount& account = AccountScope::current();
  const MemoryCategory category = CategoryScope::current();
  const auto booked = static_cast<std::int64_t>(bytes);
  account.book(category, booked);
  const std::size_t whole = (bytes + sizeof(Header) + kAlignment - 1) / kAlignment * kAlignment;
  void* block = std::aligned_alloc(kAlignment, whole);
  if (block == nullptr) {
    account.release(category, booked);
    throw std::bad_alloc();
  }
  return new (block) Header{&account, booked, category} + 1;
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = allocate_block(bytes);
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
};

}  // namespace

void install_counting_allocator() {
  static CountingAllocator* allocator = [] {
    auto* created = new CountingAllocator;  // never destroyed: tensors of static objects outlive main
    c10::SetCPUAllocator(created, /*priority=*/1);
    return created;
  }();
  (void)allocator;
}

void recategorize(const at::Tensor& tensor, MemoryCategory category) {
  recategorize_on_device(tensor, category);
  const c10::DataPtr& pointer = tensor.storage().data_ptr();
  if (pointer.get() == nullptr || pointer.get_deleter() != &free_block) return;
  Header* header = header_of(pointer.get_context());
  if (header->category == category) return;
  header->account->move(header->category, category, header->bytes);
  header->category = category;
}

}  // namespace reckon
