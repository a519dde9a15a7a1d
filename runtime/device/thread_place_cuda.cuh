// The running thread's place, for .cu files.
#pragma once

#include "runtime/device/thread_place.h"

namespace reckon {

__device__ inline ThreadPlace thread_place() {
  return {static_cast<std::int64_t>(blockIdx.x), static_cast<std::int64_t>(gridDim.x), static_cast<int>(threadIdx.x),
          static_cast<int>(blockDim.x)};
}

}  // namespace reckon
