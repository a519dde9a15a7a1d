// How the ranks of a run come into being: as threads of one process, through mpirun, or already made by the launcher
// that we run under (mpirun, srun).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_process.h"

namespace reckon {

/// Our place among the processes that an enclosing launcher started.
struct LauncherPlace {
  std::string launcher;  // "mpirun" or "srun"
  std::int64_t rank = 0, ranks = 1;
};

/// Empty when no launcher started us.
std::optional<LauncherPlace> enclosing_launcher();

/// Whether we can start ranks over MPI: mpirun is installed and we do not run under a launcher.
bool can_start_mpi();

enum class Backend { threads, mpi, nccl };

/// Why nothing can be trained or calibrated over nccl yet, and what can be done.
std::string nccl_refusal();

/// `reckon-rank` with these arguments, once per rank: one process for threads, `mpirun -n ranks` otherwise. Throws
/// RunError when mpirun is not installed.
ProcessSpec rank_processes(Backend backend, std::int64_t ranks, const std::vector<std::string>& rank_command);

}  // namespace reckon
