#include "runtime/quant/quantize_place.h"

#include "runtime/quant/quantize_cuda.h"

namespace reckon {
namespace {

std::int64_t length(auto span) {
  return static_cast<std::int64_t>(span.size());
}

}  // namespace

void QuantizePlace::quantize(std::span<const float> values, Storage storage, const QuantizeOptions& options,
                             std::span<std::byte> out) const {
  if (stream) quantize_cuda(values.data(), length(values), storage, options, out.data(), stream->stream);
  else reckon::quantize(values, storage, options, out);
}

void QuantizePlace::quantize(std::span<const Bf16Bits> values, Storage storage, const QuantizeOptions& options,
                             std::span<std::byte> out) const {
  if (stream) quantize_cuda(values.data(), length(values), storage, options, out.data(), stream->stream);
  else reckon::quantize(values, storage, options, out);
}

void QuantizePlace::dequantize(std::span<const std::byte> bytes, Storage storage, std::span<float> values) const {
  if (stream) dequantize_cuda(bytes.data(), storage, values.data(), length(values), stream->stream);
  else reckon::dequantize(bytes, storage, values);
}

void QuantizePlace::dequantize(std::span<const std::byte> bytes, Storage storage, std::span<Bf16Bits> values) const {
  if (stream) dequantize_cuda(bytes.data(), storage, values.data(), length(values), stream->stream);
  else reckon::dequantize(bytes, storage, values);
}

void QuantizePlace::dequantize_add(std::span<const std::byte> bytes, Storage storage, std::span<float> sums) const {
  if (stream) dequantize_add_cuda(bytes.data(), storage, sums.data(), length(sums), stream->stream);
  else reckon::dequantize_add(bytes, storage, sums);
}

}  // namespace reckon
