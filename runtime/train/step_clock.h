// Moments of a rank's work that the host does not see pass, because a device works off what it is given.
#pragma once

#include <cstdint>
#include <vector>

namespace reckon {

class StepClock {
 public:
  virtual ~StepClock() = default;
  /// Starts a step: earlier marks are forgotten.
  virtual void begin() = 0;
  /// Notes the moment at which the work given so far is done. Returns at once.
  virtual void mark() = 0;
  /// Every mark since begin, in order, in nanoseconds of the host's steady clock. Waits for the last.
  virtual std::vector<std::int64_t> moments() = 0;
};

}  // namespace reckon
