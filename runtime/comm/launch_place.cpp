#include "runtime/comm/launch_place.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "plan/errors.h"

namespace reckon {
namespace {

/// The variables of one kind of launcher.
struct Launcher {
  const char *name, *rank, *ranks, *local_rank;
};

// RANK first: a script under srun or mpirun may set it on purpose.
constexpr std::array<Launcher, 3> kLaunchers{
    {{"plain", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
     {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
     {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"}}};

constexpr int kFirstJobPort = 20000, kJobPorts = 10000;  // below Linux's own choice for clients (32768 and up)

std::optional<int> number(const Environment& environment, const std::string& variable) {
  const auto text = environment(variable);
  if (!text) return {};
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (text->empty() || error != std::errc() || end != text->data() + text->size())
    throw ConfigError(fmt::format("{} is \"{}\", which is no whole number", variable, *text));
  return value;
}

int required(const Environment& environment, const std::string& variable, const std::string& because) {
  const auto value = number(environment, variable);
  if (!value) throw ConfigError(fmt::format("{} is not set, although {} is", variable, because));
  return *value;
}

std::string address(const Environment& environment, const Launcher& launcher, int ranks) {
  if (const auto given = environment("MASTER_ADDR"); given && !given->empty()) return *given;
  for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})
    if (const auto hosts = environment(list); std::string(launcher.name) == "srun" && hosts && !hosts->empty())
      return first_slurm_host(*hosts);
  const auto here = number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE");
  if (ranks == 1 || (here && *here == ranks)) return "127.0.0.1";
  throw ConfigError(
      "MASTER_ADDR is not set: it must be the name or address of the host of rank 0, the same for all ranks "
      "(127.0.0.1 where all run on this host)");
}

int port(const Environment& environment, int ranks) {
  if (const auto given = number(environment, "MASTER_PORT")) {
    if (*given < 1 || *given > 65535) throw ConfigError(fmt::format("MASTER_PORT is {}, not 1 to 65535", *given));
    return *given;
  }
  if (const auto job = number(environment, "SLURM_JOB_ID")) {
    const int step = number(environment, "SLURM_STEP_ID").value_or(0);
    return kFirstJobPort + (*job % kJobPorts + step % kJobPorts + kJobPorts) % kJobPorts;
  }
  if (ranks == 1) return 0;  // any free one
  throw ConfigError("MASTER_PORT is not set: it must be a free TCP port of rank 0's host, the same for all ranks");
}

}  // namespace

std::optional<std::string> read_environment(const std::string& variable) {
  const char* text = std::getenv(variable.c_str());
  if (text == nullptr) return {};
  return text;
}

std::string first_slurm_host(const std::string& list) {
  const auto bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const auto end = list.find_first_of("-,]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

LaunchPlace launch_place(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = number(environment, launcher.rank);
    if (!rank) continue;
    LaunchPlace place;
    place.rank = *rank;
    place.ranks = required(environment, launcher.ranks, launcher.rank);
    if (place.ranks < 1 || place.rank < 0 || place.rank >= place.ranks)
      throw ConfigError(fmt::format("{} is {} and {} is {}: ranks count from 0 to one less than their number",
                                    launcher.rank, place.rank, launcher.ranks, place.ranks));
    place.local_rank = place.ranks == 1 ? number(environment, launcher.local_rank).value_or(0)
                                        : required(environment, launcher.local_rank, launcher.rank);
    if (place.local_rank < 0) throw ConfigError(fmt::format("{} is {}", launcher.local_rank, place.local_rank));
    place.address = address(environment, launcher, place.ranks);
    place.port = port(environment, place.ranks);
    return place;
  }
  if (number(environment, "WORLD_SIZE").value_or(1) > 1)
    throw ConfigError("RANK is not set, although WORLD_SIZE is; each process needs its own, from 0");
  return {0, 1, 0, "127.0.0.1", 0};
}

}  // namespace reckon
