// How a device's threads share the work of the kernels in this folder. A kernel is an object: by items, kernel(i) does
// item i alone; by rows, the lanes of a warp go over a row's columns, join what each has found, and finish the row
// together. The index mapping is here, for the launches (launch_cuda.cu) and for the tests, which play every thread of
// a launch on the host.
#pragma once

#include <cstdint>

#include "runtime/device/device_stream.h"
#include "runtime/device/thread_place.h"

namespace reckon::kernels {

constexpr int kLanes = 32;  // of a warp

/// What the lanes of a row exchange; kernels with one number leave the second alone.
template <class A>
struct Found {
  A first, second;
};

/// What a row's lanes read before any of them writes; kernels without such numbers have an empty one.
struct NoContext {};

/// The items of one thread.
template <class Kernel>
RECKON_HOST_DEVICE void run_items(const Kernel& kernel, std::int64_t items, ThreadPlace place) {
  for (std::int64_t item = place.index(); item < items; item += place.count()) kernel(item);
}

/// The rows of one thread's warp: visit(row, lane).
template <class Visit>
RECKON_HOST_DEVICE void for_each_row(std::int64_t rows, ThreadPlace place, Visit visit) {
  for (std::int64_t row = place.index() / kLanes; row < rows; row += place.count() / kLanes)
    visit(row, place.thread % kLanes);
}

/// What one lane finds in its columns.
template <class Kernel, class Context>
RECKON_HOST_DEVICE auto found_by_lane(const Kernel& kernel, const Context& context, std::int64_t row, int lane) {
  auto found = Kernel::nothing();
  for (std::int64_t column = lane; column < kernel.width; column += kLanes) kernel.visit(context, row, column, found);
  return found;
}

/// Start the kernel on every item, or every row; return before it is done. Throw RunError in a build without CUDA.
template <class Kernel>
void launch(const Kernel& kernel, std::int64_t items, DeviceStream stream);
template <class Kernel>
void launch_rows(const Kernel& kernel, std::int64_t rows, DeviceStream stream);

}  // namespace reckon::kernels
