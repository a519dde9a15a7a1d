// "the nearest legal values": what a refusal offers instead of the number that was found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// The largest divisor of `number` that is below `wanted` and the smallest above (at most one each; `number` >= 1).
std::vector<std::int64_t> nearest_divisors(std::int64_t number, std::int64_t wanted);

/// The multiples of `step` next to `wanted`, at least `step`, at most two.
std::vector<std::int64_t> nearest_multiples(std::int64_t step, std::int64_t wanted);

/// "4 or 8"; empty for an empty list.
std::string either(const std::vector<std::int64_t>& values);

}  // namespace reckon
