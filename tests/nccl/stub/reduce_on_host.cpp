// The reduction kernel's threads as a loop on the host, in place of its launch: same index mapping, same arithmetic.
#include <memory>

#include "runtime/comm/reduce_device.h"
#include "runtime/device/cuda_calls.h"

namespace reckon {
namespace {

constexpr std::int64_t kBlocks = 3;  // fewer than the elements need, so that threads take several

struct Launch {
  reduction::DeviceSources sources;
  ElementType type;
  Reduction reduction;
  std::int64_t count;
  std::byte* result;
};

void run(void* argument) {
  const std::unique_ptr<Launch> launch(static_cast<Launch*>(argument));
  reduction::with_reduction(launch->type, launch->reduction, [&](auto format, auto combine) {
    for_each_thread(launch_for(launch->count, kBlocks), [&](ThreadPlace place) {
      reduction::reduce_elements<decltype(format), decltype(combine)>(launch->sources, launch->count, launch->result,
                                                                      place);
    });
  });
}

}  // namespace

void reduce_on_device(const reduction::DeviceSources& sources, ElementType type, Reduction reduction,
                      std::int64_t count, void* result, cudaStream_t stream) {
  if (count == 0) return;
  auto* launch = new Launch{sources, type, reduction, count, static_cast<std::byte*>(result)};
  check_cuda(cudaLaunchHostFunc(stream, run, launch), "cudaLaunchHostFunc");
}

}  // namespace reckon
