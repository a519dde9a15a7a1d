// A device played on the host, for the tests of this folder's parent: every tensor counts as one of a device, launches
// run their threads one after the other with the index mapping and the exchanges of the real ones, and the calls of
// quantize_cuda.h run the CPU's. It takes the place of reckon_train_cuda.
#include <ATen/ATen.h>

#include <vector>

#include "runtime/quant/quantize_cuda.h"
#include "runtime/train/device/torch_device.h"
#include "runtime/train/kernels/device/every_kernel.h"

namespace reckon {

std::optional<DeviceStream> device_stream(const at::Tensor&) {
  return DeviceStream{};
}

namespace kernels {

template <class Kernel>
void launch(const Kernel& kernel, std::int64_t items, DeviceStream) {
  for_each_thread(launch_for(items, 3), [&](ThreadPlace place) { run_items(kernel, items, place); });
}

/// Few blocks, so that warps have several rows.
template <class Kernel>
void launch_rows(const Kernel& kernel, std::int64_t rows, DeviceStream) {
  const auto play_row = [&](std::int64_t row) {
    const auto context = kernel.begin(row);  // of all lanes: read before any of them writes
    std::vector found(kLanes, Kernel::nothing());
    for (int lane = 0; lane < kLanes; ++lane)
      found[static_cast<std::size_t>(lane)] = found_by_lane(kernel, context, row, lane);
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      const auto before = found;
      for (int lane = 0; lane < kLanes; ++lane)
        found[static_cast<std::size_t>(lane)] =
            Kernel::join(before[static_cast<std::size_t>(lane)], before[static_cast<std::size_t>(lane ^ distance)]);
    }
    for (int lane = kLanes - 1; lane >= 0; --lane)
      kernel.finish(context, row, found[static_cast<std::size_t>(lane)], lane);
  };
  for_each_thread(launch_for(rows * kLanes, 3), [&](ThreadPlace place) {
    for_each_row(rows, place, [&](std::int64_t row, int lane) {
      if (lane == 0) play_row(row);
    });
  });
}

RECKON_EVERY_DEVICE_KERNEL

}  // namespace kernels

namespace {

std::size_t length(std::int64_t count) {
  return static_cast<std::size_t>(count);
}
std::size_t bytes_of(Storage storage, std::int64_t elements) {
  return length(storage_bytes(storage, elements).value);
}

}  // namespace

bool cuda_quantization_is_built_in() {
  return true;
}
void quantize_cuda(const float* values, std::int64_t elements, Storage storage, const QuantizeOptions& options,
                   std::byte* out, void*) {
  quantize(std::span(values, length(elements)), storage, options, {out, bytes_of(storage, elements)});
}
void quantize_cuda(const Bf16Bits* values, std::int64_t elements, Storage storage, const QuantizeOptions& options,
                   std::byte* out, void*) {
  quantize(std::span(values, length(elements)), storage, options, {out, bytes_of(storage, elements)});
}
void dequantize_cuda(const std::byte* bytes, Storage storage, float* values, std::int64_t elements, void*) {
  dequantize({bytes, bytes_of(storage, elements)}, storage, std::span(values, length(elements)));
}
void dequantize_cuda(const std::byte* bytes, Storage storage, Bf16Bits* values, std::int64_t elements, void*) {
  dequantize({bytes, bytes_of(storage, elements)}, storage, std::span(values, length(elements)));
}
void dequantize_add_cuda(const std::byte* bytes, Storage storage, float* sums, std::int64_t elements, void*) {
  dequantize_add({bytes, bytes_of(storage, elements)}, storage, std::span(sums, length(elements)));
}
void sum_and_quantize_cuda(const std::byte*, std::int64_t, int, Storage, float*, std::int64_t, const QuantizeOptions&,
                           std::byte*, void*) {
  throw std::logic_error("training does not call this");
}
void accumulate_cuda(std::byte*, Storage, float*, std::int64_t, const QuantizeOptions&, void*) {
  throw std::logic_error("training does not call this");
}

}  // namespace reckon
