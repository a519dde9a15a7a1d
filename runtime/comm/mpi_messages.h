// Groups of ranks that cannot reach each other's memory: on several hosts, or where the system forbids it.
// Announcements and data travel as MPI messages; sums are formed as everywhere, from all ranks' parts in rank order.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/shared_communicator.h"

namespace reckon {

/// Throws RunError with MPI's own text unless `result` is MPI_SUCCESS.
void check_mpi(int result, const char* call);

/// What the calls of one group share.
struct MessageGroup {
  ~MessageGroup();

  std::shared_ptr<HostRank> host;
  MPI_Comm comm = MPI_COMM_NULL;  // owned
  std::vector<int> world_ranks;   // members in group order
  std::vector<int> hosts;         // their hosts, as the lowest world rank there
  std::vector<int> host_ranks;    // their indices on their host's board
  bool shared_memory = true;      // groups on one host may use it
  int rank = 0;
  std::string name;

  int size() const { return static_cast<int>(world_ranks.size()); }
  int world_rank(int member) const { return world_ranks[static_cast<std::size_t>(member)]; }
  bool on_one_host() const;
};

/// The group's communicator: through shared memory where all members can use it, else by messages. Collective.
std::unique_ptr<Communicator> make_group_communicator(std::shared_ptr<MessageGroup> group);

std::shared_ptr<ActiveCall> make_mpi_collective_call(std::shared_ptr<MessageGroup> group, Operation operation,
                                                     std::int64_t call);
std::shared_ptr<ActiveCall> make_mpi_message_call(std::shared_ptr<MessageGroup> group, Operation operation,
                                                  std::int64_t message);

}  // namespace reckon
