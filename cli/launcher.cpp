#include "cli/launcher.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "plan/errors.h"

namespace reckon {

namespace {

std::optional<std::int64_t> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text) return std::nullopt;
  const std::string_view digits = text;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// A TCP port of this host that nobody listens on now.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  const bool found = socket >= 0 && ::bind(socket, plain, length) == 0 && ::getsockname(socket, plain, &length) == 0;
  if (socket >= 0) ::close(socket);
  if (!found) throw RunError("no free TCP port was found for the ranks to meet at; set MASTER_PORT");
  return ntohs(address.sin_port);
}

bool is_installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace

std::optional<LauncherPlace> enclosing_launcher() {
  // Rank and size as Open MPI, MPICH's relatives and srun set them. A batch script has some of Slurm's variables too,
  // but no PMIX_RANK: only srun starts ranks.
  const struct {
    const char* launcher;
    const char* rank;
    const char* ranks;
  } kinds[] = {{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
               {"mpirun", "PMI_RANK", "PMI_SIZE"},
               {"srun", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& kind : kinds) {
    const auto rank = number_in(kind.rank), ranks = number_in(kind.ranks);
    if (rank && ranks && *ranks > 0) return LauncherPlace{kind.launcher, *rank, *ranks};
  }
  return std::nullopt;
}

bool can_start_mpi() {
  return is_installed("mpirun") && !enclosing_launcher();
}

void require_gpu_training(std::string_view built_in) {
  const bool communicates = built_in.find("nccl") != std::string_view::npos;
  const bool trains = built_in.find("threads") != std::string_view::npos;
  if (communicates && trains) return;
  throw ConfigError(fmt::format(
      "--backend nccl trains on GPUs, and this build {}; `./bootstrap build --preset gpu` builds one that does "
      "(docs/gpu.md); --backend mpi or threads runs the plan on this machine's processors",
      trains ? "trains on processors only: it has neither NCCL nor CUDA kernels"
             : "trains nothing: it has no libtorch"));
}

ProcessSpec rank_processes(Backend backend, std::int64_t ranks, const std::vector<std::string>& rank_command) {
  // One thread a rank: ranks share the cores, and spinning OpenMP threads would take them from each other.
  // With RECKON_STARTED_BY_RUN a rank leaves its error in a file for us to tell, instead of telling it itself.
  ProcessSpec spec{rank_command, {{"OMP_NUM_THREADS", "1"}, {"RECKON_STARTED_BY_RUN", "1"}}};
  if (backend == Backend::nccl && ranks > 1 && std::getenv("MASTER_PORT") == nullptr)
    spec.environment.emplace_back("MASTER_PORT", fmt::format("{}", free_port()));
  if (backend == Backend::threads || (backend == Backend::nccl && ranks == 1)) return spec;
  if (!is_installed("mpirun")) {
    throw RunError(
        "mpirun is not installed, so ranks cannot be started over MPI; on Debian, package openmpi-bin brings it. "
        "`--backend threads` runs them as threads of one process");
  }
  // More ranks than slots is allowed; ranks are not pinned (a second job would be pinned to the same cores); waiting
  // ranks yield, without which ranks that share a core take milliseconds for microseconds of work.
  spec.command = {"mpirun", "--oversubscribe",       "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
                  "-n",     fmt::format("{}", ranks)};
  spec.command.insert(spec.command.end(), rank_command.begin(), rank_command.end());
  if (::geteuid() == 0) {
    spec.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT", "1");
    spec.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  return spec;
}

}  // namespace reckon
