// Memory on the device for tests, and the reason to skip them where there is none.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "runtime/device/cuda_calls.h"

namespace reckon {

/// Numbers in device memory.
template <class Number>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t count) : count_(count) {
    void* address = nullptr;
    check_cuda(cudaMalloc(&address, count * sizeof(Number) + 1), "cudaMalloc");
    address_ = static_cast<Number*>(address);
  }
  explicit DeviceBuffer(const std::vector<Number>& values) : DeviceBuffer(values.size()) {
    check_cuda(cudaMemcpy(address_, values.data(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~DeviceBuffer() { cudaFree(address_); }  // unchecked: nothing can be done about it here
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  Number* address() const { return address_; }
  /// Waits for the device.
  std::vector<Number> read() const {
    std::vector<Number> values(count_);
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check_cuda(cudaMemcpy(values.data(), address_, bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(Number); }

  std::size_t count_;
  Number* address_ = nullptr;
};

/// Tests that need a device: they skip with the reason where there is none.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    devices_ = usable_devices(reason);
    if (devices_ > 0) return;
    RecordProperty("skipped_because", reason);  // the JSON of this GoogleTest has no reason otherwise
    GTEST_SKIP() << "no GPU here; " << reason;
  }
  int devices_ = 0;
};

}  // namespace reckon
