// A tensor kept in fewer bits than it was computed in, and the way back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "plan/number_format.h"

namespace reckon {

struct EncodedTensor {
  at::Tensor bytes;  // storage_bytes(storage, rows * width) of them
  std::int64_t rows = 0, width = 0;
};

/// How values are put on the format's grid; `seed` names the tensor, so that a step draws the same numbers every time.
struct EncodeRounding {
  Rounding rounding = Rounding::nearest_even;
  std::uint64_t seed = 0;
};

/// `values` [rows, width] in fp32 or bf16, unit column stride. The bytes are booked on the caller's category.
/// Throws ConfigError for a storage that cannot be executed.
EncodedTensor encode(const at::Tensor& values, Storage storage, EncodeRounding rounding);
/// A new dense tensor [rows, width] of `type`.
at::Tensor decode(const EncodedTensor& encoded, Storage storage, at::ScalarType type);

}  // namespace reckon
