// Buffers of ranks that are threads and share one device. Copies and sums are given to the device's default stream, on
// which the ranks compute too: what one rank gives it before it announces a call comes before what others give it after
// they have seen the announcement, so nothing waits for the device.
#include <cuda_runtime_api.h>

#include "runtime/comm/reduce_device.h"
#include "runtime/comm/thread_memory.h"
#include "runtime/device/cuda_calls.h"

namespace reckon {
namespace {

constexpr cudaStream_t kDefaultStream = nullptr;

class DeviceThreadMemory final : public ThreadMemory {
 public:
  bool on_device(const void* address) const override {
    if (address == nullptr) return false;
    cudaPointerAttributes attributes{};
    check_cuda(cudaPointerGetAttributes(&attributes, address), "cudaPointerGetAttributes");
    return attributes.type == cudaMemoryTypeDevice;
  }
  void copy(void* to, const void* from, std::int64_t bytes) override {
    if (!on_device(to)) return ThreadMemory::copy(to, from, bytes);
    check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, kDefaultStream),
               "cudaMemcpyAsync");
  }
  void reduce(std::span<const void* const> sources, ElementType type, Reduction reduction, std::int64_t count,
              void* result) override {
    if (!on_device(result)) return ThreadMemory::reduce(sources, type, reduction, count, result);
    reduce_on_device(reduction::source_table(sources), type, reduction, count, result, kDefaultStream);
  }
};

}  // namespace

std::shared_ptr<HostMemory> thread_memory() {
  std::string reason;
  if (usable_devices(reason) == 0) return std::make_shared<ThreadMemory>();
  return std::make_shared<DeviceThreadMemory>();
}

}  // namespace reckon
