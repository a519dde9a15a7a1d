#include "plan/simulation_details.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace reckon {

Seconds quantile(const std::vector<Seconds>& sorted, double share) {
  if (sorted.empty()) throw std::logic_error("a quantile of no samples");
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace reckon
