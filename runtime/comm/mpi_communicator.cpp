// MPI starts the processes and introduces them; between ranks of one host the data then moves through shared memory.
#include "runtime/comm/mpi_communicator.h"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <numeric>

#include "plan/errors.h"
#include "runtime/comm/shared_communicator.h"

namespace reckon {
namespace {

void check(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw RunError(fmt::format("{} failed: {}", call, std::string(text, static_cast<std::size_t>(length))));
}

/// A block that the first rank makes and all attach to.
std::shared_ptr<std::byte> common_block(HostMemory& memory, std::size_t bytes, int rank) {
  std::uint64_t token = rank == 0 ? memory.create_block(bytes) : 0;
  check(MPI_Bcast(&token, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD), "MPI_Bcast");
  auto block = memory.attach_block(token, bytes);
  check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
  if (rank == 0) memory.forget_block(token);
  return block;
}

std::shared_ptr<SharedGroup> world_group(int rank, int size, const CommunicatorOptions& options) {
  std::vector<int> process_ids(static_cast<std::size_t>(size));
  const int own = getpid();
  check(MPI_Allgather(&own, 1, MPI_INT, process_ids.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
  const auto memory = process_memory(std::move(process_ids));
  HostBoard board(common_block(*memory, HostBoard::bytes(size), rank), size);
  GroupBoard group(common_block(*memory, GroupBoard::bytes(size), rank), size);
  std::vector<int> members(static_cast<std::size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  return std::make_shared<SharedGroup>(
      SharedGroup{std::make_shared<HostRank>(rank, memory, std::move(board), options.timeout), std::move(group),
                  std::move(members), rank, "world"});
}

void run_body(const std::shared_ptr<SharedGroup>& group, const std::function<void(Communicator& world)>& body) {
  const ProgressGuard guard(group->host);
  SharedCommunicator world(group);
  try {
    body(world);
    world.barrier().wait();  // nobody leaves while a peer still reads its memory
  } catch (const Error& error) {
    group->host->progress.board().fail(fmt::format("rank {} failed: {}", group->rank, error.what()), error.exit_code());
    throw;
  } catch (const std::exception& error) {
    world.fail(fmt::format("rank {} failed: {}", group->rank, error.what()));
    throw;
  }
}

}  // namespace

bool mpi_is_built_in() {
  return true;
}

void run_rank_over_mpi(int ranks, const CommunicatorOptions& options,
                       const std::function<void(Communicator& world)>& body) {
  int provided = 0, initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  int rank = 0, size = 1;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (ranks != 0 && ranks != size)
    throw RunError(fmt::format("the plan needs {} ranks, the launcher started {} processes", ranks, size));
  const auto group = world_group(rank, size, options);
  run_body(group, body);
  if (initialized == 0) check(MPI_Finalize(), "MPI_Finalize");
}

}  // namespace reckon
