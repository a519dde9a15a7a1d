// The tokens of one forward pass on one rank, and what its loss came to.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/row_share.h"

namespace reckon {

struct MicroBatch {
  at::Tensor tokens, targets, positions;                // [T] int32; target < 0: no loss (padding)
  std::vector<std::shared_ptr<const RowShare>> shares;  // by row: what the rank has of it, and how its attention goes
  std::uint64_t rounding_seed = 0;                      // of this step and these rows
  double loss_scale = 1.0;  // gradient of the training loss with respect to one token's loss
  double loss_sum = 0.0;    // over tokens with a target; filled by the head's forward pass
  at::Tensor device_loss;   // [1] fp64 on a device, to which it is added there instead
};

}  // namespace reckon
