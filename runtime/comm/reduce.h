// Adds (or takes the maximum of) one element run of several ranks, in rank order, so that the result depends on
// nothing but the values: ((x0 + x1) + x2) + ...
#pragma once

#include <cstdint>
#include <span>

#include "runtime/comm/operation.h"

namespace reckon {

/// Types that can be reduced; raw bytes cannot.
bool can_reduce(ElementType type);

/// result[i] = sources[0][i] (+) sources[1][i] (+) ... for `count` elements. BF16 accumulates in FP32 and rounds once,
/// to nearest even. `result` may be one of the sources.
void reduce_in_rank_order(std::span<const void* const> sources, ElementType type, Reduction reduction,
                          std::int64_t count, void* result);

}  // namespace reckon
