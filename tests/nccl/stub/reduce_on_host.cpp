// The reduction kernel's threads as a loop on the host, in place of its launch: same index mapping, same arithmetic.
#include <memory>

#include "runtime/comm/reduce_device.h"
#include "runtime/device/cuda_calls.h"

namespace reckon {
namespace {

constexpr std::int64_t kBlocks = 3;  // fewer than the elements need, so that threads take several

template <class Sources>
struct Launch {
  Sources sources;
  ElementType type;
  Reduction reduction;
  std::int64_t count;
  std::byte* result;
};

template <class Sources>
void run(void* argument) {
  const std::unique_ptr<Launch<Sources>> launch(static_cast<Launch<Sources>*>(argument));
  reduction::with_reduction(launch->type, launch->reduction, [&](auto format, auto combine) {
    for_each_thread(launch_for(launch->count, kBlocks), [&](ThreadPlace place) {
      reduction::reduce_elements<decltype(format), decltype(combine)>(launch->sources, launch->count, launch->result,
                                                                      place);
    });
  });
}

template <class Sources>
void play(const Sources& sources, ElementType type, Reduction reduction, std::int64_t count, void* result,
          cudaStream_t stream) {
  if (count == 0) return;
  auto* launch = new Launch<Sources>{sources, type, reduction, count, static_cast<std::byte*>(result)};
  check_cuda(cudaLaunchHostFunc(stream, run<Sources>, launch), "cudaLaunchHostFunc");
}

}  // namespace

void reduce_on_device(const reduction::DeviceSources& sources, ElementType type, Reduction reduction,
                      std::int64_t count, void* result, cudaStream_t stream) {
  play(sources, type, reduction, count, result, stream);
}

void reduce_on_device(const reduction::SourceTable& sources, ElementType type, Reduction reduction, std::int64_t count,
                      void* result, cudaStream_t stream) {
  play(sources, type, reduction, count, result, stream);
}

}  // namespace reckon
