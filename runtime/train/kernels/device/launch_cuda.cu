// Launches of the kernels in this folder. No torch headers: nvcc sees pointers only.
#include "runtime/device/cuda_calls.h"
#include "runtime/device/thread_place_cuda.cuh"
#include "runtime/train/kernels/device/every_kernel.h"

namespace reckon::kernels {
namespace {

template <class Kernel>
__global__ void each_item(Kernel kernel, std::int64_t items) {
  run_items(kernel, items, thread_place());
}

/// All lanes of a warp have the same rows, so they exchange together.
template <class Kernel>
__global__ void each_row(Kernel kernel, std::int64_t rows) {
  for_each_row(rows, thread_place(), [&](std::int64_t row, int lane) {
    const auto context = kernel.begin(row);
    auto found = found_by_lane(kernel, context, row, lane);
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      auto other = found;
      other.first = __shfl_xor_sync(0xffffffffu, found.first, distance);
      other.second = __shfl_xor_sync(0xffffffffu, found.second, distance);
      found = Kernel::join(found, other);
    }
    kernel.finish(context, row, found, lane);
  });
}

cudaStream_t cuda_stream(DeviceStream stream) {
  return static_cast<cudaStream_t>(stream.stream);
}

}  // namespace

template <class Kernel>
void launch(const Kernel& kernel, std::int64_t items, DeviceStream stream) {
  if (items == 0) return;
  const LaunchShape shape = launch_for(items);
  each_item<<<static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.threads), 0, cuda_stream(stream)>>>(
      kernel, items);
  check_cuda(cudaGetLastError(), "launch of a training kernel");
}

template <class Kernel>
void launch_rows(const Kernel& kernel, std::int64_t rows, DeviceStream stream) {
  if (rows == 0) return;
  const LaunchShape shape = launch_for(rows * kLanes);
  each_row<<<static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.threads), 0, cuda_stream(stream)>>>(
      kernel, rows);
  check_cuda(cudaGetLastError(), "launch of a training kernel");
}

RECKON_EVERY_DEVICE_KERNEL

}  // namespace reckon::kernels
