// The one way a CUDA call is made: check_cuda(cudaX(...), "cudaX", place). A failing call ends the run with a sentence
// that names call, rank, device and CUDA's own text.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace reckon {

/// Who makes a call; -1 = not known here (kernels know no ranks; a failing rank's error is told with its rank anyway).
struct CallPlace {
  int rank = -1;
  int device = -1;
};

/// " on rank 2, device 0", or as much of it as is known.
std::string describe(CallPlace place);

/// Throws RunError unless `result` is cudaSuccess.
void check_cuda(cudaError_t result, const char* call, CallPlace place = {});

/// Devices that can be used here, 0 without a driver; `reason` says why there are none.
int usable_devices(std::string& reason);

}  // namespace reckon
