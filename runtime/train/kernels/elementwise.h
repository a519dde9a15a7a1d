// Small loops over dense arrays: sums, casts, bias, embedding rows.
#pragma once

#include <cstdint>

#include "runtime/train/kernels/element.h"

namespace reckon::kernels {

/// target += source
template <class T>
void add(T* target, const T* source, std::int64_t count);

/// main += part, where `part` is a gradient in compute precision.
template <class T>
void accumulate(Accumulator<T>* main, const T* part, std::int64_t count);

/// Every row += bias.
template <class T>
void add_bias(T* x, const T* bias, std::int64_t rows, std::int64_t width);

/// gradient[column] += sum over rows of dy.
template <class T>
void bias_gradient(const T* dy, Accumulator<T>* gradient, std::int64_t rows, std::int64_t width);

/// out[row] = table[tokens[row] - first], zeros where the token is another rank's.
template <class T>
void gather_rows(const T* table, const std::int32_t* tokens, T* out, std::int64_t rows, std::int64_t width,
                 std::int64_t first, std::int64_t table_rows);

/// gradient[tokens[row] - first] += dy[row], in row order.
template <class T>
void scatter_rows(const T* dy, const std::int32_t* tokens, Accumulator<T>* gradient, std::int64_t rows,
                  std::int64_t width, std::int64_t first, std::int64_t table_rows);

/// target[row][...] = source[row][...] for rows of `width` elements that lie `stride`s apart.
template <class T>
void copy_rows(T* target, std::int64_t target_stride, const T* source, std::int64_t source_stride, std::int64_t rows,
               std::int64_t width);

void to_bfloat16(const float* source, BFloat16* target, std::int64_t count);
void to_float(const BFloat16* source, float* target, std::int64_t count);

}  // namespace reckon::kernels
