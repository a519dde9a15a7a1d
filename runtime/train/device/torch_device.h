// What training needs of libtorch's CUDA part. A build without CUDA has torch_device_absent.cpp.
#pragma once

#include <optional>

#include "runtime/device/device_stream.h"

namespace at {
class Tensor;
}

namespace reckon {

/// The stream on which work on a tensor is ordered, where it lies on a device; nothing for memory of the host.
std::optional<DeviceStream> device_stream(const at::Tensor& tensor);

}  // namespace reckon
