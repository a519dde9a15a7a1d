// Launches of quant_kernels.h: a warp works on one or several quantization blocks, its lanes exchange the blocks'
// ranges by shuffles. Compiled with --fmad=false, so that results equal the CPU's to the bit.
#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "plan/errors.h"
#include "runtime/quant/quant_kernels.h"
#include "runtime/quant/quantize_cuda.h"
#include "runtime/quant/with_format.h"

namespace reckon {
namespace {

using namespace quant;

constexpr int kThreads = 256;

void check_cuda(cudaError_t result, const char* call) {
  if (result != cudaSuccess) throw RunError(std::string(call) + " failed: " + cudaGetErrorString(result));
}

unsigned grid_for(std::int64_t threads) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((threads + kThreads - 1) / kThreads, 1, 1 << 20));
}

template <class Value>
__global__ void find_largest(KernelTensor<const Value> tensor) {
  const std::int64_t lane = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  std::uint32_t largest = lane_largest_finite(tensor, lane, static_cast<std::int64_t>(gridDim.x) * blockDim.x);
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
  if (threadIdx.x % kWarp == 0) atomicMax(reinterpret_cast<unsigned*>(tensor.bytes + tensor.tensor_scale), largest);
}

__global__ void finish_tensor_scale(std::uint32_t* bits) {
  *bits = bits_of(tensor_scale_of(float_of(*bits)));
}

template <class Format, class Value>
__global__ void quantize_kernel(KernelTensor<const Value> tensor, int lanes) {
  const int blocks_per_warp = kWarp / lanes;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * blockDim.x / kWarp;
  const std::int64_t warp = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  const int place = static_cast<int>(threadIdx.x) % kWarp, lane = place % lanes;
  for (std::int64_t first = warp * blocks_per_warp; first < tensor.blocks; first += warps * blocks_per_warp) {
    const std::int64_t block = first + place / lanes;
    const bool exists = block < tensor.blocks;
    BlockRange range = exists ? lane_range(tensor, block, lane, lanes) : empty_range();
    for (int distance = lanes / 2; distance > 0; distance /= 2)
      range = merge(range, {__shfl_xor_sync(0xffffffffu, range.largest_magnitude, distance),
                            __shfl_xor_sync(0xffffffffu, range.lowest, distance),
                            __shfl_xor_sync(0xffffffffu, range.highest, distance)});
    if (exists) lane_encode<Format>(tensor, block, lane, lanes, range);
  }
}

template <class Format, bool Add, class Value>
__global__ void dequantize_kernel(KernelTensor<Value> tensor) {
  const std::int64_t groups = (tensor.elements + kGroup - 1) / kGroup;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; group < groups;
       group += stride)
    decode_group<Format, Add>(tensor, group);
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
void launch_quantize(const Value* values, std::int64_t elements, Storage requested, const QuantizeOptions& options,
                     std::byte* out, cudaStream_t stream) {
  check_storage(requested);
  if (elements == 0) return;
  const Storage storage = with_fixed_blocks(requested);
  auto tensor = tensor_of(values, elements, out, storage);
  tensor.stochastic = options.rounding == Rounding::stochastic;
  tensor.seed = options.seed;
  tensor.first_index = static_cast<std::uint64_t>(options.first_index);
  if (tensor.has_tensor_scale) {
    check_cuda(cudaMemsetAsync(out + tensor.tensor_scale, 0, 4, stream), "cudaMemsetAsync");
    find_largest<<<std::min(grid_for(elements), 1024u), kThreads, 0, stream>>>(tensor);
    finish_tensor_scale<<<1, 1, 0, stream>>>(reinterpret_cast<std::uint32_t*>(out + tensor.tensor_scale));
  }
  const int lanes = lanes_per_block(storage.block);
  with_format(storage.format, [&](auto format) {
    quantize_kernel<decltype(format)><<<grid_for(tensor.blocks * lanes), kThreads, 0, stream>>>(tensor, lanes);
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
  with_format(storage.format, [&](auto format) {
    dequantize_kernel<decltype(format), Add>
        <<<grid_for((elements + kGroup - 1) / kGroup), kThreads, 0, stream>>>(tensor);
  });
  check_cuda(cudaGetLastError(), "launch of the dequantize kernel");
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

}  // namespace reckon
