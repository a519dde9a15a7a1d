// Launches of reduce_core.h. Compiled with --fmad=false: nothing here multiplies, but results must never depend on it.
#include "runtime/comm/reduce_device.h"
#include "runtime/device/cuda_calls.h"
#include "runtime/device/thread_place_cuda.cuh"

namespace reckon {
namespace {

template <class Format, class Combine, class Sources>
__global__ void reduce_kernel(Sources sources, std::int64_t count, std::byte* result) {
  reduction::reduce_elements<Format, Combine>(sources, count, result, thread_place());
}

template <class Sources>
void launch_reduction(const Sources& sources, ElementType type, Reduction reduction, std::int64_t count, void* result,
                      cudaStream_t stream) {
  if (count == 0) return;
  const LaunchShape shape = launch_for(count);
  reduction::with_reduction(type, reduction, [&](auto format, auto combine) {
    reduce_kernel<decltype(format), decltype(combine)>
        <<<static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.threads), 0, stream>>>(
            sources, count, static_cast<std::byte*>(result));
  });
  check_cuda(cudaGetLastError(), "launch of the reduction kernel");
}

}  // namespace

void reduce_on_device(const reduction::DeviceSources& sources, ElementType type, Reduction reduction,
                      std::int64_t count, void* result, cudaStream_t stream) {
  launch_reduction(sources, type, reduction, count, result, stream);
}

void reduce_on_device(const reduction::SourceTable& sources, ElementType type, Reduction reduction, std::int64_t count,
                      void* result, cudaStream_t stream) {
  launch_reduction(sources, type, reduction, count, result, stream);
}

}  // namespace reckon
