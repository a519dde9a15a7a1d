// quantize.h for memory of the host or of a device, by where the caller's buffers lie.
#pragma once

#include <optional>

#include "runtime/device/device_stream.h"
#include "runtime/quant/quantize.h"

namespace reckon {

struct QuantizePlace {
  std::optional<DeviceStream> stream;  // nothing: buffers of the host

  void quantize(std::span<const float> values, Storage storage, const QuantizeOptions& options,
                std::span<std::byte> out) const;
  void quantize(std::span<const Bf16Bits> values, Storage storage, const QuantizeOptions& options,
                std::span<std::byte> out) const;
  void dequantize(std::span<const std::byte> bytes, Storage storage, std::span<float> values) const;
  void dequantize(std::span<const std::byte> bytes, Storage storage, std::span<Bf16Bits> values) const;
  void dequantize_add(std::span<const std::byte> bytes, Storage storage, std::span<float> sums) const;
};

}  // namespace reckon
