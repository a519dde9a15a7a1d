// The calls of quantize.h for tensors in device memory: the same bytes, because the kernels run the same core. Pointers
// are device pointers, `stream` is a cudaStream_t (null: the default stream); the calls return before the device is
// done.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/number_format.h"
#include "runtime/quant/quantize.h"

namespace reckon {

/// True in a build with CUDA. Without it the calls below throw RunError.
bool cuda_quantization_is_built_in();

/// `out` has storage_bytes(storage, elements) bytes, aligned to 4.
void quantize_cuda(const float* values, std::int64_t elements, Storage storage, const QuantizeOptions& options,
                   std::byte* out, void* stream);
void quantize_cuda(const Bf16Bits* values, std::int64_t elements, Storage storage, const QuantizeOptions& options,
                   std::byte* out, void* stream);
void dequantize_cuda(const std::byte* bytes, Storage storage, float* values, std::int64_t elements, void* stream);
void dequantize_cuda(const std::byte* bytes, Storage storage, Bf16Bits* values, std::int64_t elements, void* stream);
/// sums[i] += decoded value i.
void dequantize_add_cuda(const std::byte* bytes, Storage storage, float* sums, std::int64_t elements, void* stream);

}  // namespace reckon
