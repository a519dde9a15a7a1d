// Lets calls have buffers of the host where the communicator wants memory of a device: numbers that ranks tell each
// other outside training itself. Such a call's buffers are copied to the device before it and back after it; others
// pass.
#pragma once

#include <memory>

#include "runtime/comm/communicator.h"
#include "runtime/device/cuda_calls.h"

namespace reckon {

/// `device_communicator` outlives it; `place` is told with a failing CUDA call.
std::unique_ptr<Communicator> staged(Communicator& device_communicator, CallPlace place = {});

}  // namespace reckon
