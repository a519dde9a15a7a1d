#include "runtime/device/cuda_calls.h"

#include <fmt/format.h>

#include "plan/errors.h"

namespace reckon {

std::string describe(CallPlace place) {
  std::string text;
  if (place.rank >= 0) text += fmt::format(" on rank {}", place.rank);
  if (place.device >= 0) text += fmt::format("{} device {}", place.rank >= 0 ? "," : " on", place.device);
  return text;
}

void check_cuda(cudaError_t result, const char* call, CallPlace place) {
  if (result == cudaSuccess) return;
  throw RunError(fmt::format("{} failed{}: {} ({}, CUDA error {})", call, describe(place), cudaGetErrorString(result),
                             cudaGetErrorName(result), static_cast<int>(result)));
}

int usable_devices(std::string& reason) {
  int devices = 0;
  const cudaError_t result = cudaGetDeviceCount(&devices);  // unchecked: the error is the answer
  if (result == cudaSuccess && devices > 0) return devices;
  reason = result == cudaSuccess ? "CUDA sees no device" : fmt::format("CUDA says: {}", cudaGetErrorString(result));
  return 0;
}

}  // namespace reckon
