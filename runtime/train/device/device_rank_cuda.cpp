#include "runtime/train/device/device_rank.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cmath>

#include "runtime/device/cuda_calls.h"
#include "runtime/train/device/device_memory_cuda.h"

namespace reckon {
namespace {

/// Events on the stream that the rank computes on. They are made once and used in every step.
class DeviceClock final : public StepClock {
 public:
  explicit DeviceClock(TrainDevice device) : device_(device) {}
  ~DeviceClock() override {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);  // unchecked: nothing can be done about it here
  }
  DeviceClock(const DeviceClock&) = delete;

  /// The first mark ties both clocks: nothing is under way between steps, so it happens when it is waited for.
  void begin() override {
    used_ = 0;
    mark();
    check(cudaEventSynchronize(events_[0]), "cudaEventSynchronize");
    tied_at_ = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
                   .count();
    used_ = 1;
  }
  void mark() override {
    if (used_ == events_.size()) {
      events_.push_back(nullptr);
      check(cudaEventCreate(&events_.back()), "cudaEventCreate");
    }
    check(cudaEventRecord(events_[used_++], stream()), "cudaEventRecord");
  }
  std::vector<std::int64_t> moments() override {
    std::vector<std::int64_t> result;
    check(cudaEventSynchronize(events_[used_ - 1]), "cudaEventSynchronize");
    for (std::size_t i = 1; i < used_; ++i) {
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, events_[0], events_[i]), "cudaEventElapsedTime");
      result.push_back(tied_at_ + std::llround(static_cast<double>(milliseconds) * 1e6));
    }
    return result;
  }

 private:
  cudaStream_t stream() const {
    return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device_.index)).stream();
  }
  void check(cudaError_t result, const char* call) const { check_cuda(result, call, {-1, device_.index}); }

  TrainDevice device_;
  std::vector<cudaEvent_t> events_;  // [0] ties the clocks
  std::size_t used_ = 0;
  std::int64_t tied_at_ = 0;
};

}  // namespace

bool device_training_is_built_in() {
  return true;
}

void use_device(TrainDevice device) {
  if (device.is_cpu()) return;
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(device.index));
  at::globalContext().lazyInitDevice(at::kCUDA);  // the allocator is there from then on
  count_device_memory();
}

void recategorize_on_device(const at::Tensor& tensor, MemoryCategory category) {
  if (tensor.is_cuda()) recategorize_device_block(tensor.device().index(), tensor.storage().data(), category);
}

std::unique_ptr<StepClock> device_clock(TrainDevice device) {
  if (device.is_cpu()) return nullptr;
  return std::make_unique<DeviceClock>(device);
}

DeviceUse device_use(TrainDevice device) {
  if (device.is_cpu()) return {};
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device.index));
  std::size_t free = 0, all = 0;
  check_cuda(cudaMemGetInfo(&free, &all), "cudaMemGetInfo", {-1, device.index});
  return {Bytes(stats.reserved_bytes[0].peak), Bytes(static_cast<std::int64_t>(all - free))};
}

}  // namespace reckon
