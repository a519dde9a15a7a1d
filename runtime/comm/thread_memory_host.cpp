// A build without CUDA: all buffers are the host's.
#include "runtime/comm/thread_memory.h"

namespace reckon {

std::shared_ptr<HostMemory> thread_memory() {
  return std::make_shared<ThreadMemory>();
}

}  // namespace reckon
