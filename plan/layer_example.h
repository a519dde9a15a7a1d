// A layer's weights without the repetition of its experts, for sums over them.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/parameters.h"

namespace reckon {

/// layer_parameters with the first routed expert only: the others are like it.
std::vector<Parameter> layer_with_one_expert(const ModelSpec& model, std::int64_t layer);

}  // namespace reckon
