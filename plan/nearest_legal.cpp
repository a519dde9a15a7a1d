#include "plan/nearest_legal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace reckon {

std::vector<std::int64_t> nearest_divisors(std::int64_t number, std::int64_t wanted) {
  std::int64_t below = 0, above = 0;
  const auto consider = [&](std::int64_t divisor) {
    if (divisor < wanted) below = std::max(below, divisor);
    if (divisor > wanted && (above == 0 || divisor < above)) above = divisor;
  };
  for (std::int64_t divisor = 1; divisor <= number / divisor; ++divisor) {
    if (number % divisor != 0) continue;
    consider(divisor);
    consider(number / divisor);
  }
  std::vector<std::int64_t> found;
  if (below > 0) found.push_back(below);
  if (above > 0) found.push_back(above);
  return found;
}

std::vector<std::int64_t> nearest_multiples(std::int64_t step, std::int64_t wanted) {
  const std::int64_t below = wanted / step * step;
  if (below == 0) return {step};
  return {below, below + step};
}

std::string either(const std::vector<std::int64_t>& values) {
  return fmt::format("{}", fmt::join(values, " or "));
}

}  // namespace reckon
