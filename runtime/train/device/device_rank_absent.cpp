// A build without CUDA.
#include "plan/errors.h"
#include "runtime/train/device/device_rank.h"

namespace reckon {

bool device_training_is_built_in() {
  return false;
}

void use_device(TrainDevice device) {
  if (!device.is_cpu())
    throw RunError("this build trains on processors only; `./bootstrap build --preset gpu` builds one for GPUs");
}

void recategorize_on_device(const at::Tensor&, MemoryCategory) {}

std::unique_ptr<StepClock> device_clock(TrainDevice) {
  return nullptr;
}

DeviceUse device_use(TrainDevice) {
  return {};
}

}  // namespace reckon
