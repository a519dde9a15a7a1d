#include "runtime/train/flat_window.h"

#include <ATen/ATen.h>

#include <functional>
#include <numeric>
#include <stdexcept>

namespace reckon {

std::int64_t WeightPlace::elements() const {
  return shape.empty() ? 0 : std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

at::Tensor WeightPlace::in(const std::vector<FlatWindow>& windows) const {
  if (shape.empty() || windows.empty()) return {};
  for (const FlatWindow& window : windows)
    if (offset >= window.first && offset + elements() <= window.first + window.values.numel())
      return window.values.narrow(0, offset - window.first, elements()).view(shape);
  throw std::logic_error("an op reads a weight whose section is not gathered");
}

}  // namespace reckon
