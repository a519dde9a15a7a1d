// Simulated time is an integer, so that sums are exact and equal instants compare equal.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "plan/units.h"

namespace reckon {

/// 10^-12 seconds; the 63-bit range is 106 days.
using Picoseconds = Quantity<struct PicosecondsTag, std::int64_t>;

/// Throws std::overflow_error for a time outside the range.
inline Picoseconds to_picoseconds(Seconds time) {
  if (!(std::abs(time.value) < 9.2e6)) throw std::overflow_error("the clock of picoseconds ends after 106 days");
  return Picoseconds(std::llround(time.value * 1e12));
}
inline Seconds to_seconds(Picoseconds time) {
  return Seconds(static_cast<double>(time.value) * 1e-12);
}

}  // namespace reckon
