#include "runtime/train/device/torch_device.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>

#include "runtime/train/device/device_memory_cuda.h"

namespace reckon {

std::optional<DeviceStream> device_stream(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return std::nullopt;
  throw_broken_limit();  // before the first kernel that works on what did not fit
  return DeviceStream{c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream()};
}

}  // namespace reckon
