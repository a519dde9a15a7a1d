// Op times with everything multiplied by one factor and attention by another: the two constants that published
// iteration times can identify.
#pragma once

#include "plan/op_times.h"

namespace reckon {

struct TimeFactors {
  double linear = 1.0;     // products, memory-bound ops, collectives, messages, optimizer
  double attention = 1.0;  // attention kernels
};

OpTimes scaled(OpTimes times, TimeFactors factors);

}  // namespace reckon
