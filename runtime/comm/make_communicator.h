// Backend names -> running ranks.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/comm/communicator.h"

namespace reckon {

/// Names of the backends of this build: "threads", and "mpi" and "nccl" where they are built in.
std::vector<std::string> built_in_backends();

/// Runs `body` for every rank that this process hosts: all of them with "threads", one with "mpi" and "nccl" (the
/// launcher starts the processes; ranks = 0 takes as many as it started). Throws ConfigError for an unknown or absent
/// backend, and whatever ends the run.
void run_ranks(std::string_view backend, int ranks, const CommunicatorOptions& options,
               const std::function<void(Communicator& world)>& body);

}  // namespace reckon
