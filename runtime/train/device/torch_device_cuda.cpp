#include "runtime/train/device/torch_device.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>

namespace reckon {

std::optional<DeviceStream> device_stream(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return std::nullopt;
  return DeviceStream{c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream()};
}

}  // namespace reckon
