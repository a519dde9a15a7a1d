// Who this process is among the ranks of a run, read from what launchers put into the environment: torchrun and plain
// scripts (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), srun (SLURM_*) and Open MPI's mpirun.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace reckon {

struct LaunchPlace {
  int rank = 0, ranks = 1;
  int local_rank = 0;   // among the ranks of this host: the device it takes
  std::string address;  // of rank 0's host
  int port = 0;
};

using Environment = std::function<std::optional<std::string>(const std::string& variable)>;

/// The environment of this process.
std::optional<std::string> read_environment(const std::string& variable);

/// Throws ConfigError naming the variable that is missing, is no number or contradicts another one, and what would be
/// right.
LaunchPlace launch_place(const Environment& environment = read_environment);

/// The first host of Slurm's list: "node[007-012,31],big3" -> "node007".
std::string first_slurm_host(const std::string& list);

}  // namespace reckon
