// Sums on the device: reduce_core.h's arithmetic, so that GPU and CPU agree to the bit.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/comm/reduce_core.h"

namespace reckon {

/// result[i] = the sources' elements i in rank order, on `stream`; returns before it is done.
void reduce_on_device(const reduction::DeviceSources& sources, ElementType type, Reduction reduction,
                      std::int64_t count, void* result, cudaStream_t stream);
void reduce_on_device(const reduction::SourceTable& sources, ElementType type, Reduction reduction, std::int64_t count,
                      void* result, cudaStream_t stream);

}  // namespace reckon
