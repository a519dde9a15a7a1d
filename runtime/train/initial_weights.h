// Initial weights from a counter-based generator: no state, so any slice of any tensor can be made anywhere.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "plan/parameter_layout.h"

namespace reckon {

/// Fills this rank's slice of one parameter (see ParameterStore).
void fill_initial_weight(const LocalParameter& parameter, std::uint64_t seed, const at::Tensor& target);

}  // namespace reckon
