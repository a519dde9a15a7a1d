// Runs of the flat buffers that are whole on this rank at the moment, and the places of weights in them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace reckon {

/// Elements [first, first + values.numel()) of a flat buffer: all of it, or a unit of it while a section runs.
struct FlatWindow {
  std::int64_t first = 0;
  at::Tensor values;
};

/// A weight (or several that one product reads side by side) in the flat buffer.
struct WeightPlace {
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;  // empty = the op has none

  std::int64_t elements() const;
  /// Its view inside the window that holds it; undefined if it has no shape or there are no windows (gradients, in
  /// forward). Throws std::logic_error if no window holds it.
  at::Tensor in(const std::vector<FlatWindow>& windows) const;
};

}  // namespace reckon
