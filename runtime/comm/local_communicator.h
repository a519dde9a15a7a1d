// Ranks as threads of this process.
#pragma once

#include <functional>

#include "runtime/comm/communicator.h"

namespace reckon {

/// Runs `body` once per rank, each on its own thread, and returns when all have returned. The first failure of a rank
/// ends the calls of all others and is thrown here. When a thread stays stuck outside the communicator for more than
/// two seconds after a failure, nothing is thrown: the failure is told (CommunicatorOptions::tell_last_failure) and the
/// process ends by std::quick_exit, because unwinding would free what that thread still uses.
void run_ranks_as_threads(int ranks, const CommunicatorOptions& options,
                          const std::function<void(Communicator& world)>& body);

}  // namespace reckon
