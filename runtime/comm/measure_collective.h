// Times one collective over a group and checks what it delivered: the measuring part of calibration.
#pragma once

#include <cstdint>

#include "plan/collective.h"
#include "runtime/comm/communicator.h"

namespace reckon {

struct CollectiveMeasurement {
  Seconds median, fastest;  // of the slowest rank in each repetition
  std::int64_t wrong_elements = 0;
};

/// Runs `collective` on FP32 data `repetitions` times after a first untimed one; every rank must call it and gets the
/// same result. `bytes` is the whole tensor as plan/collective.h counts it, rounded down to whole elements per rank.
/// send_receive passes one message from rank 0 to rank 1. Ranks start each repetition together (a barrier precedes it).
CollectiveMeasurement measure_collective(Communicator& group, Collective collective, Bytes bytes, int repetitions);

}  // namespace reckon
