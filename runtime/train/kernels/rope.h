// Rotary position embedding (2104.09864) in place, in the half-split layout of Hugging Face's LLaMA: element i of the
// first half of a head turns with element i of the second half by position / theta^(2i / rotated).
#pragma once

#include <cstdint>

#include "runtime/train/kernels/element.h"

namespace reckon::kernels {

/// Rotates `heads` consecutive heads of `head_dim` (of which the first `rotated` elements turn) in each of `rows` rows
/// that are `stride` elements apart, by the angles of positions[row]. `cosine` and `sine` are [positions, rotated / 2].
/// `direction` +1 turns forward, -1 back (which is also the gradient).
template <class T>
void rotate(T* rows_of_heads, std::int64_t rows, std::int64_t stride, std::int64_t heads, std::int64_t head_dim,
            std::int64_t rotated, const std::int32_t* positions, const Accumulator<T>* cosine,
            const Accumulator<T>* sine, int direction);

}  // namespace reckon::kernels
