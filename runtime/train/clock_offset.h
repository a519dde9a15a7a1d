#pragma once

#include <cstdint>

#include "runtime/comm/communicator.h"

namespace reckon {

/// Nanoseconds by which this rank's steady clock is ahead of rank 0's: rank 0 asks every rank for its time, and half of
/// the fastest answer's round trip is the way back (Cristian, Probabilistic clock synchronization, 1989; error at most
/// half of that round trip). Zero on ranks of rank 0's host, which share its clock. Collective.
std::int64_t clock_offset(Communicator& world);

}  // namespace reckon
