// Checks and layout, shared by CPU and CUDA.
#include "runtime/quant/quantize.h"

#include <fmt/format.h>

#include "plan/errors.h"
#include "runtime/quant/with_format.h"

namespace reckon {

void check_storage(Storage requested) {
  const Storage storage = with_fixed_blocks(requested);
  if (!is_block_scaled(storage.format))
    throw ConfigError(fmt::format("{} has no blocks to quantize into", name_of(storage.format)));
  if (storage.block < 16 || storage.block > 2048 || storage.block % 8 != 0)
    throw ConfigError(
        fmt::format("a quantization block of {} elements: it must be a multiple of 8 from 16 to 2048", storage.block));
  if (is_affine(storage.format) && storage.scale != ScaleFormat::fp32 && storage.scale != ScaleFormat::bf16)
    throw ConfigError(
        fmt::format("{} stores a minimum per block, which needs scales of type fp32 or bf16", name_of(storage.format)));
}

QuantizedLayout quantized_layout(Storage requested, std::int64_t elements) {
  const Storage storage = with_fixed_blocks(requested);
  const std::int64_t width = quant::scale_bytes(quant::scale_type(storage.scale));
  QuantizedLayout layout;
  layout.bytes = storage_bytes(storage, elements).value;
  if (elements == 0) return layout;
  layout.blocks = (elements + storage.block - 1) / storage.block;
  layout.scales = storage.format == NumberFormat::nvfp4 ? 4 : 0;
  layout.minimums = layout.scales + layout.blocks * width;
  layout.codes = layout.minimums + (is_affine(storage.format) ? layout.blocks * width : 0);
  return layout;
}

}  // namespace reckon
