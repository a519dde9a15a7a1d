// Where the numbers of a model's tensors come from: a checkpoint of this project or files of Hugging Face.
#pragma once

#include <span>
#include <string>

#include "runtime/checkpoint/tensor_region.h"

namespace reckon {

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// Fills `into` with the elements of `region` of one state ("weight", "first_moment", "second_moment", and
  /// what narrow_moments.h adds) of the parameter `name`. Throws ConfigError when the source does not hold all of them.
  virtual void read(const std::string& state, const std::string& name, const TensorRegion& region,
                    std::span<float> into) const = 0;
};

}  // namespace reckon
