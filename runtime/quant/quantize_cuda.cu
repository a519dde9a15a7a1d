// Launches of quant_kernels.h: a warp works on one or several quantization blocks, its lanes exchange the blocks'
// ranges by shuffles. Compiled with --fmad=false, so that results equal the CPU's to the bit.
#include <cuda_runtime.h>

#include "runtime/device/cuda_calls.h"
#include "runtime/device/thread_place_cuda.cuh"
#include "runtime/quant/quant_kernels.h"
#include "runtime/quant/quantize_cuda.h"
#include "runtime/quant/with_format.h"

namespace reckon {
namespace {

using namespace quant;

/// The range of a whole block, known to all its lanes.
__device__ BlockRange exchanged(BlockRange range, int lanes) {
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    range = merge(range, {__shfl_xor_sync(0xffffffffu, range.largest_magnitude, distance),
                          __shfl_xor_sync(0xffffffffu, range.lowest, distance),
                          __shfl_xor_sync(0xffffffffu, range.highest, distance)});
  return range;
}

template <class Value>
__global__ void find_largest(KernelTensor<const Value> tensor) {
  const ThreadPlace place = thread_place();
  std::uint32_t largest = lane_largest_finite(tensor, place.index(), place.count());
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
  if (place.thread % kWarp == 0) atomicMax(reinterpret_cast<unsigned*>(tensor.bytes + tensor.tensor_scale), largest);
}

__global__ void finish_tensor_scale(std::uint32_t* bits) {
  *bits = bits_of(tensor_scale_of(float_of(*bits)));
}

template <class Format, class Value>
__global__ void quantize_kernel(KernelTensor<const Value> tensor, int lanes) {
  const ThreadPlace place = thread_place();
  for (std::int64_t round = 0; round < rounds_of(tensor.blocks, lanes, place.count()); ++round) {
    const auto [block, lane] = lane_place(place, lanes, round);
    const bool exists = block < tensor.blocks;
    const BlockRange range = exchanged(exists ? lane_range(tensor, block, lane, lanes) : empty_range(), lanes);
    if (exists) lane_encode<Format>(tensor, block, lane, lanes, range);
  }
}

/// The exchange of ranges also separates reading the parts from writing the result, which may be one of them.
template <class Format>
__global__ void sum_and_quantize_kernel(QuantizedParts parts, KernelTensor<float> sums, int lanes) {
  const ThreadPlace place = thread_place();
  for (std::int64_t round = 0; round < rounds_of(sums.blocks, lanes, place.count()); ++round) {
    const auto [block, lane] = lane_place(place, lanes, round);
    const bool exists = block < sums.blocks;
    if (exists) lane_sum<Format>(parts, sums, block, lane, lanes);
    const BlockRange range = exchanged(exists ? lane_range(sums, block, lane, lanes) : empty_range(), lanes);
    if (exists) lane_encode<Format>(sums, block, lane, lanes, range);
  }
}

template <class Format, bool Add, class Value>
__global__ void dequantize_kernel(KernelTensor<Value> tensor) {
  decode_groups<Format, Add>(tensor, thread_place());
}

unsigned blocks_of(LaunchShape shape) {
  return static_cast<unsigned>(shape.blocks);
}
unsigned threads_of(LaunchShape shape) {
  return static_cast<unsigned>(shape.threads);
}

template <class Value>
KernelTensor<Value> tensor_of(Value* values, std::int64_t elements, std::byte* bytes, Storage storage) {
  auto tensor = kernel_tensor(values, elements, bytes, quantized_layout(storage, elements), storage.block,
                              scale_type(storage.scale));
  tensor.microscaling = storage.format == NumberFormat::mxfp4;
  tensor.has_tensor_scale = storage.format == NumberFormat::nvfp4;
  return tensor;
}

template <class Value>
void set_rounding(KernelTensor<Value>& tensor, const QuantizeOptions& options) {
  tensor.stochastic = options.rounding == Rounding::stochastic;
  tensor.seed = options.seed;
  tensor.first_index = static_cast<std::uint64_t>(options.first_index);
}

template <class Value>
void launch_quantize(const Value* values, std::int64_t elements, Storage requested, const QuantizeOptions& options,
                     std::byte* out, cudaStream_t stream) {
  check_storage(requested);
  if (elements == 0) return;
  const Storage storage = with_fixed_blocks(requested);
  auto tensor = tensor_of(values, elements, out, storage);
  set_rounding(tensor, options);
  if (tensor.has_tensor_scale) {
    check_cuda(cudaMemsetAsync(out + tensor.tensor_scale, 0, 4, stream), "cudaMemsetAsync");
    const LaunchShape search = launch_for(elements, 1024);
    find_largest<<<blocks_of(search), threads_of(search), 0, stream>>>(tensor);
    finish_tensor_scale<<<1, 1, 0, stream>>>(reinterpret_cast<std::uint32_t*>(out + tensor.tensor_scale));
  }
  const int lanes = lanes_per_block(storage.block);
  const LaunchShape shape = launch_for(tensor.blocks * lanes);
  with_format(storage.format, [&](auto format) {
    quantize_kernel<decltype(format)><<<blocks_of(shape), threads_of(shape), 0, stream>>>(tensor, lanes);
  });
  check_cuda(cudaGetLastError(), "launch of the quantize kernel");
}

template <bool Add, class Value>
void launch_dequantize(const std::byte* bytes, Storage requested, Value* values, std::int64_t elements,
                       cudaStream_t stream) {
  check_storage(requested);
  if (elements == 0) return;
  const Storage storage = with_fixed_blocks(requested);
  const auto tensor = tensor_of(values, elements, const_cast<std::byte*>(bytes), storage);  // only read
  const LaunchShape shape = launch_for((elements + kGroup - 1) / kGroup);
  with_format(storage.format, [&](auto format) {
    dequantize_kernel<decltype(format), Add><<<blocks_of(shape), threads_of(shape), 0, stream>>>(tensor);
  });
  check_cuda(cudaGetLastError(), "launch of the dequantize kernel");
}

/// One pass: parts are read, sums and codes written. NVFP4's scale depends on the whole sum, so it takes two.
void launch_sum(const QuantizedParts& parts, float* sums, std::int64_t elements, Storage requested,
                const QuantizeOptions& options, std::byte* out, cudaStream_t stream) {
  check_storage(requested);
  if (elements == 0) return;
  const Storage storage = with_fixed_blocks(requested);
  if (storage.format == NumberFormat::nvfp4) {
    for (int part = 0; part < parts.count; ++part) {
      const std::byte* bytes = parts.first + part * parts.stride;
      if (part == 0 && !parts.add_first) launch_dequantize<false>(bytes, storage, sums, elements, stream);
      else launch_dequantize<true>(bytes, storage, sums, elements, stream);
    }
    return launch_quantize(static_cast<const float*>(sums), elements, storage, options, out, stream);
  }
  auto tensor = tensor_of(sums, elements, out, storage);
  set_rounding(tensor, options);
  const int lanes = lanes_per_block(storage.block);
  const LaunchShape shape = launch_for(tensor.blocks * lanes);
  with_format(storage.format, [&](auto format) {
    sum_and_quantize_kernel<decltype(format)><<<blocks_of(shape), threads_of(shape), 0, stream>>>(parts, tensor, lanes);
  });
  check_cuda(cudaGetLastError(), "launch of the sum-and-quantize kernel");
}

}  // namespace

bool cuda_quantization_is_built_in() {
  return true;
}

void quantize_cuda(const float* values, std::int64_t elements, Storage storage, const QuantizeOptions& options,
                   std::byte* out, void* stream) {
  launch_quantize(values, elements, storage, options, out, static_cast<cudaStream_t>(stream));
}
void quantize_cuda(const Bf16Bits* values, std::int64_t elements, Storage storage, const QuantizeOptions& options,
                   std::byte* out, void* stream) {
  launch_quantize(values, elements, storage, options, out, static_cast<cudaStream_t>(stream));
}
void dequantize_cuda(const std::byte* bytes, Storage storage, float* values, std::int64_t elements, void* stream) {
  launch_dequantize<false>(bytes, storage, values, elements, static_cast<cudaStream_t>(stream));
}
void dequantize_cuda(const std::byte* bytes, Storage storage, Bf16Bits* values, std::int64_t elements, void* stream) {
  launch_dequantize<false>(bytes, storage, values, elements, static_cast<cudaStream_t>(stream));
}
void dequantize_add_cuda(const std::byte* bytes, Storage storage, float* sums, std::int64_t elements, void* stream) {
  launch_dequantize<true>(bytes, storage, sums, elements, static_cast<cudaStream_t>(stream));
}

void sum_and_quantize_cuda(const std::byte* parts, std::int64_t stride, int ranks, Storage storage, float* sums,
                           std::int64_t elements, const QuantizeOptions& options, std::byte* out, void* stream) {
  launch_sum({const_cast<std::byte*>(parts), stride, ranks, false}, sums, elements, storage, options, out,
             static_cast<cudaStream_t>(stream));
}
void accumulate_cuda(std::byte* stored, Storage storage, float* values, std::int64_t elements,
                     const QuantizeOptions& options, void* stream) {
  launch_sum({stored, 0, 1, true}, values, elements, storage, options, stored, static_cast<cudaStream_t>(stream));
}

}  // namespace reckon
