// A place in a device's order of work, for interfaces that show no CUDA header.
#pragma once

namespace reckon {

struct DeviceStream {
  void* stream = nullptr;  // a cudaStream_t; null: the device's default one
};

}  // namespace reckon
