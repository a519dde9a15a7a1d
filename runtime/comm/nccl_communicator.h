// Ranks as processes with a GPU each, over NCCL. Buffers are device memory; calls run on the rank's own streams and
// wait for what CommunicatorOptions::compute_stream has been given before them.
//
// Beyond the contract of communicator.h: messages start together, at the next wait, done or collective of the rank, and
// end together; calls of different groups must come in one order that is possible for all ranks (a collective of one
// group that waits for a later one of another group never ends). docs/gpu.md.
#pragma once

#include <functional>

#include "runtime/comm/communicator.h"

namespace reckon {

/// True in the build that has NCCL.
bool nccl_is_built_in();

/// Devices of this host that ranks can use; 0 with the reason, which is a sentence.
int nccl_devices(std::string& reason);

/// Runs `body` as this process's rank, found in the environment (launch_place.h). A failure of any rank ends the calls
/// of all. Throws RunError in a build without NCCL or on a host without a GPU, ConfigError for a wrong environment.
void run_rank_over_nccl(int ranks, const CommunicatorOptions& options,
                        const std::function<void(Communicator& world)>& body);

}  // namespace reckon
