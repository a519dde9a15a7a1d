// A build without CUDA.
#include "plan/errors.h"
#include "runtime/train/kernels/device/every_kernel.h"

namespace reckon::kernels {
namespace {

[[noreturn]] void refuse() {
  throw RunError("this build has no CUDA kernels; preset gpu brings them");
}

}  // namespace

template <class Kernel>
void launch(const Kernel&, std::int64_t, DeviceStream) {
  refuse();
}

template <class Kernel>
void launch_rows(const Kernel&, std::int64_t, DeviceStream) {
  refuse();
}

RECKON_EVERY_DEVICE_KERNEL

}  // namespace reckon::kernels
