// A build without CUDA: every tensor is the host's.
#include "runtime/train/device/torch_device.h"

namespace reckon {

std::optional<DeviceStream> device_stream(const at::Tensor&) {
  return std::nullopt;
}

}  // namespace reckon
