#include "runtime/train/encoded_tensor.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <span>

#include "plan/errors.h"
#include "runtime/quant/quantize_place.h"
#include "runtime/train/ops/dispatch.h"
#include "runtime/train/rank_model.h"

namespace reckon {
namespace {

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel())};
}

template <class Value>
StridedRows<Value> strided_rows(const at::Tensor& x) {
  return {static_cast<const Value*>(x.data_ptr()), x.size(0), x.size(1), x.stride(0)};
}

template <class Value>
std::span<Value> values_of(const at::Tensor& x) {
  return {static_cast<Value*>(x.data_ptr()), static_cast<std::size_t>(x.numel())};
}

/// Runs `action` with an object of the type that the number formats read: float or the bits of a bf16.
template <class Action>
void with_value_type(at::ScalarType type, Action action) {
  if (type == at::kFloat) return action(float{});
  if (type == at::kBFloat16) return action(Bf16Bits{});
  throw ConfigError("tensors can be stored in fewer bits where the plan computes in fp32 or bf16");
}

}  // namespace

EncodedTensor encode(const at::Tensor& values, Storage storage, EncodeRounding rounding) {
  EncodedTensor encoded{{}, values.size(0), values.size(1)};
  if (!is_block_scaled(storage.format)) {
    encoded.bytes = at::empty({values.size(0), values.size(1)}, values.options().dtype(scalar_type(storage.format)));
    encoded.bytes.copy_(values);
    return encoded;
  }
  check_storage(storage);
  encoded.bytes = at::empty({storage_bytes(storage, values.numel()).value}, values.options().dtype(at::kByte));
  const QuantizeOptions options{rounding.rounding, rounding.seed, 0};
  with_value_type(values.scalar_type(), [&]<class Value>(Value) {
    const QuantizePlace place{device_stream(values)};
    const at::Tensor dense = place.stream ? values.contiguous() : values;
    if (dense.is_contiguous())
      place.quantize(std::span<const Value>(values_of<Value>(dense)), storage, options, bytes_of(encoded.bytes));
    else quantize(strided_rows<Value>(values), storage, options, bytes_of(encoded.bytes));
  });
  return encoded;
}

at::Tensor decode(const EncodedTensor& encoded, Storage storage, at::ScalarType type) {
  at::Tensor values = at::empty({encoded.rows, encoded.width}, encoded.bytes.options().dtype(type));
  if (!is_block_scaled(storage.format)) {
    values.copy_(encoded.bytes);
    return values;
  }
  with_value_type(type, [&]<class Value>(Value) {
    QuantizePlace{device_stream(values)}.dequantize(bytes_of(encoded.bytes), storage, values_of<Value>(values));
  });
  return values;
}

}  // namespace reckon
