// Which of a kernel's threads this is. On the device it comes from the launch (thread_place_cuda.cuh); on the host a
// loop plays every thread of every block, so that a kernel's index mapping is tested without a device.
#pragma once

#include <cstdint>

#include "runtime/device/host_device.h"

namespace reckon {

/// A one-dimensional launch.
struct LaunchShape {
  std::int64_t blocks = 1;
  int threads = 256;  // per block
};

struct ThreadPlace {
  std::int64_t block = 0, blocks = 1;
  int thread = 0, threads = 1;  // of this block

  /// Index among all threads of the launch, and their number: the stride of a loop over more work than threads.
  RECKON_HOST_DEVICE constexpr std::int64_t index() const { return block * threads + thread; }
  RECKON_HOST_DEVICE constexpr std::int64_t count() const { return blocks * threads; }
};

/// Enough blocks for one item a thread, at most `most`; every kernel loops with ThreadPlace::count as its stride.
constexpr LaunchShape launch_for(std::int64_t items, std::int64_t most = std::int64_t{1} << 20) {
  constexpr int kThreads = 256;
  const std::int64_t blocks = (items + kThreads - 1) / kThreads;
  return {blocks < 1 ? 1 : blocks > most ? most : blocks, kThreads};
}

/// Runs `thread` for every thread of the launch, last block and last thread first: nothing may rely on an order.
template <class Action>
void for_each_thread(LaunchShape shape, Action thread) {
  for (std::int64_t block = shape.blocks - 1; block >= 0; --block)
    for (int i = shape.threads - 1; i >= 0; --i) thread(ThreadPlace{block, shape.blocks, i, shape.threads});
}

}  // namespace reckon
