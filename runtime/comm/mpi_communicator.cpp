// MPI starts the processes and introduces them. Ranks of one host then move their data through shared memory; groups
// that span hosts, or hosts that forbid reading another process's memory, use MPI messages.
#include "runtime/comm/mpi_communicator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "plan/errors.h"
#include "runtime/comm/mpi_messages.h"

namespace reckon {
namespace {

template <class Number>
std::vector<int> gathered(MPI_Comm comm, Number own) {
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  std::vector<int> all(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(&own, 1, MPI_INT, all.data(), 1, MPI_INT, comm), "MPI_Allgather");
  return all;
}

/// Can this process read the next one's memory? Containers and hardened systems may refuse.
bool can_read_neighbour(HostMemory& memory, MPI_Comm host_comm, int host_rank, int host_size) {
  const std::uint64_t probe = 0x7265636b6f6eu;
  std::array<std::uint64_t, 1> own{reinterpret_cast<std::uint64_t>(&probe)};
  std::vector<std::uint64_t> all(static_cast<std::size_t>(host_size));
  check_mpi(MPI_Allgather(own.data(), 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, host_comm), "MPI_Allgather");
  const int next = (host_rank + 1) % host_size;
  int readable = 0;
  try {
    std::uint64_t seen = 0;
    memory.look(next, all[static_cast<std::size_t>(next)], sizeof(seen), &seen);
    readable = seen == probe;
  } catch (const RunError&) {  // refused: messages are used instead
  }
  int all_readable = 0;
  check_mpi(MPI_Allreduce(&readable, &all_readable, 1, MPI_INT, MPI_MIN, host_comm), "MPI_Allreduce");
  return all_readable != 0;
}

std::shared_ptr<MessageGroup> world_group(int rank, const CommunicatorOptions& options) {
  MPI_Comm host_comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host_comm),
            "MPI_Comm_split_type");
  int host_rank = 0, host_size = 1;
  check_mpi(MPI_Comm_rank(host_comm, &host_rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(host_comm, &host_size), "MPI_Comm_size");
  const auto memory = process_memory(gathered(host_comm, static_cast<int>(getpid())));

  std::uint64_t token = host_rank == 0 ? memory->create_block(HostBoard::bytes(host_size)) : 0;
  check_mpi(MPI_Bcast(&token, 1, MPI_UINT64_T, 0, host_comm), "MPI_Bcast");
  HostBoard board(memory->attach_block(token, HostBoard::bytes(host_size)), host_size);
  check_mpi(MPI_Barrier(host_comm), "MPI_Barrier");
  if (host_rank == 0) memory->forget_block(token);

  const auto group = std::make_shared<MessageGroup>();
  int lowest = rank;
  check_mpi(MPI_Bcast(&lowest, 1, MPI_INT, 0, host_comm), "MPI_Bcast");
  int shared = options.shared_memory && can_read_neighbour(*memory, host_comm, host_rank, host_size);
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &shared, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  group->host = std::make_shared<HostRank>(host_rank, memory, std::move(board), options.timeout);
  group->comm = MPI_COMM_WORLD;
  group->world_ranks = gathered(MPI_COMM_WORLD, rank);
  group->hosts = gathered(MPI_COMM_WORLD, lowest);
  group->host_ranks = gathered(MPI_COMM_WORLD, host_rank);
  group->shared_memory = shared != 0;
  group->rank = rank;
  group->name = "world";
  check_mpi(MPI_Comm_free(&host_comm), "MPI_Comm_free");
  return group;
}

void run_body(const std::shared_ptr<MessageGroup>& group, const std::function<void(Communicator& world)>& body) {
  const ProgressGuard guard(group->host);
  const std::unique_ptr<Communicator> world = make_group_communicator(group);
  HostBoard& board = group->host->progress.board();
  try {
    body(*world);
    world->barrier().wait();  // nobody leaves while a peer still reads its memory
  } catch (const Error& error) {
    board.fail(fmt::format("rank {} failed: {}", group->rank, error.what()), error.exit_code());
    throw;
  } catch (const std::exception& error) {
    board.fail(fmt::format("rank {} failed: {}", group->rank, error.what()), ExitCode::run_failed);
    throw;
  }
}

}  // namespace

bool mpi_is_built_in() {
  return true;
}

void run_rank_over_mpi(int ranks, const CommunicatorOptions& options,
                       const std::function<void(Communicator& world)>& body) {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_MULTIPLE)
    throw RunError("this MPI library does not support calls from several threads (MPI_THREAD_MULTIPLE)");
  // The default handler ends the process on the spot; communicators made from this one inherit the handler.
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  int rank = 0, size = 1;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (ranks != 0 && ranks != size)
    throw RunError(fmt::format("the plan needs {} ranks, the launcher started {} processes", ranks, size));
  run_body(world_group(rank, options), body);
  check_mpi(MPI_Finalize(), "MPI_Finalize");
}

}  // namespace reckon
