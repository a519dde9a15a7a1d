// Ranks as processes started by mpirun, srun or another MPI launcher.
#pragma once

#include <functional>

#include "runtime/comm/communicator.h"

namespace reckon {

/// True in the build that has MPI.
bool mpi_is_built_in();

/// Runs `body` as this process's rank. MPI is initialised before and finalised after it. When `body` throws, the peers'
/// calls fail and the error passes through; the process must then end with a non-zero code, upon which the launcher
/// ends the rest. Throws RunError in a build without MPI, or when the run has not `ranks` processes (0 = any number).
void run_rank_over_mpi(int ranks, const CommunicatorOptions& options,
                       const std::function<void(Communicator& world)>& body);

}  // namespace reckon
