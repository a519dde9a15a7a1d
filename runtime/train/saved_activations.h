// What one section keeps from the forward to the backward pass of one micro-batch: tensors as they were computed, and
// tensors encoded in fewer bits, by index of the op list.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "runtime/train/encoded_tensor.h"

namespace reckon {

struct SavedActivations {
  std::vector<at::Tensor> values;        // by tensor; undefined = not kept
  std::map<int, EncodedTensor> encoded;  // by storage name (plan/kept_tensors.h)
};

}  // namespace reckon
