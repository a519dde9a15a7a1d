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

/// A gradient reduction's middle in one pass: sums[i] = the parts' decoded values i in rank order in FP32, and `out` =
/// the sums quantized again. Part r lies at parts + r * stride, aligned as `out` is; `out` may be one of them.
void sum_and_quantize_cuda(const std::byte* parts, std::int64_t stride, int ranks, Storage storage, float* sums,
                           std::int64_t elements, const QuantizeOptions& options, std::byte* out, void* stream);
/// Gradient accumulation in place, in one pass: values[i] += stored value i, and `stored` = the values quantized again.
void accumulate_cuda(std::byte* stored, Storage storage, float* values, std::int64_t elements,
                     const QuantizeOptions& options, void* stream);

}  // namespace reckon
