// How the ranks of a run come into being: as threads of one process, through mpirun, or already made by the launcher
// that we run under (mpirun, srun).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

/// Throws ConfigError saying what is missing unless `built_in`, the names of the backends of a build, has all that
/// training on GPUs needs.
void require_gpu_training(std::string_view built_in);

/// `reckon-rank` with these arguments, once per rank: one process for threads and for one rank, `mpirun -n ranks`
/// otherwise; over nccl they meet at a free port of this host unless MASTER_PORT names one. Throws RunError when mpirun
/// is not installed.
ProcessSpec rank_processes(Backend backend, std::int64_t ranks, const std::vector<std::string>& rank_command);

}  // namespace reckon
