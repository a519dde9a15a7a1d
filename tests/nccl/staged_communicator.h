// Lets checks that keep their numbers in host memory run over a communicator of device memory: every call's buffers are
// copied to the device before it and back after it.
#pragma once

#include <memory>

#include "runtime/comm/communicator.h"

namespace reckon {

std::unique_ptr<Communicator> staged(Communicator& device_communicator);

}  // namespace reckon
