// A rank whose tensors lie on a device: its memory as libtorch's caching allocator tells it, and its clock. A build
// without CUDA has device_rank_absent.cpp, which knows the host only.
#pragma once

#include <memory>
#include <string>

#include "plan/memory_category.h"
#include "plan/units.h"
#include "runtime/train/step_clock.h"
#include "runtime/train/train_device.h"

namespace at {
class Tensor;
}

namespace reckon {

/// True in a build that trains on GPUs.
bool device_training_is_built_in();

/// Makes it the thread's device; what the thread allocates there from now on is booked on its account and category.
/// Throws RunError for a device in a build without CUDA. Nothing to do for the host.
void use_device(TrainDevice device);

/// Books the tensor's memory under another category; nothing for a tensor of the host.
void recategorize_on_device(const at::Tensor& tensor, MemoryCategory category);

/// Null for the host.
std::unique_ptr<StepClock> device_clock(TrainDevice device);

/// Bytes of the device in this process's allocator at its peak, and in use by all that uses the device now.
struct DeviceUse {
  Bytes reserved, used;
};
DeviceUse device_use(TrainDevice device);

}  // namespace reckon
