#include "runtime/comm/make_communicator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plan/errors.h"
#include "runtime/comm/local_communicator.h"
#include "runtime/comm/mpi_communicator.h"
#include "runtime/comm/nccl_communicator.h"

namespace reckon {

std::vector<std::string> built_in_backends() {
  std::vector<std::string> names{"threads"};
  if (mpi_is_built_in()) names.push_back("mpi");
  if (nccl_is_built_in()) names.push_back("nccl");
  return names;
}

void run_ranks(std::string_view backend, int ranks, const CommunicatorOptions& options,
               const std::function<void(Communicator& world)>& body) {
  if (backend == "threads") return run_ranks_as_threads(ranks, options, body);
  if (backend == "mpi" && mpi_is_built_in()) return run_rank_over_mpi(ranks, options, body);
  if (backend == "nccl" && nccl_is_built_in()) return run_rank_over_nccl(ranks, options, body);
  throw ConfigError(
      fmt::format("backend {} is not in this build; built in: {}", backend, fmt::join(built_in_backends(), ", ")));
}

}  // namespace reckon
