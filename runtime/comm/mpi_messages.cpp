#include "runtime/comm/mpi_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "plan/errors.h"

namespace reckon {
namespace {

class MessageCommunicator final : public Communicator {
 public:
  explicit MessageCommunicator(std::shared_ptr<MessageGroup> group)
      : Communicator(group->rank, group->size(), group->name),
        group_(std::move(group)),
        sent_(static_cast<std::size_t>(size())),
        received_(static_cast<std::size_t>(size())) {
    group_->host->progress.poll_every(Seconds(50e-6));  // peers on other hosts cannot ring
  }

  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override;
  void fail(const std::string& message) override { group_->host->progress.board().fail(message, ExitCode::run_failed); }

 private:
  std::shared_ptr<PendingOperation> start(Operation operation) override;

  std::shared_ptr<MessageGroup> group_;
  std::int64_t calls_ = 0;
  std::vector<std::int64_t> sent_, received_;
};

std::shared_ptr<PendingOperation> MessageCommunicator::start(Operation operation) {
  std::shared_ptr<ActiveCall> call;
  const auto peer = static_cast<std::size_t>(operation.peer);
  switch (operation.kind) {
    case OperationKind::send: call = make_mpi_message_call(group_, std::move(operation), ++sent_[peer]); break;
    case OperationKind::receive: call = make_mpi_message_call(group_, std::move(operation), ++received_[peer]); break;
    default: call = make_mpi_collective_call(group_, std::move(operation), ++calls_);
  }
  group_->host->progress.add(call);
  return call;
}

std::unique_ptr<Communicator> MessageCommunicator::split(int color, int key, const std::string& name) {
  barrier().wait();  // a peer that does not come is reported here; MPI_Comm_split would wait for ever
  const auto part = std::make_shared<MessageGroup>();
  part->host = group_->host;
  check_mpi(MPI_Comm_split(group_->comm, color < 0 ? MPI_UNDEFINED : color, key, &part->comm), "MPI_Comm_split");
  if (part->comm == MPI_COMM_NULL) return nullptr;
  int members = 0;
  check_mpi(MPI_Comm_size(part->comm, &members), "MPI_Comm_size");
  check_mpi(MPI_Comm_rank(part->comm, &part->rank), "MPI_Comm_rank");
  std::vector<int> places(static_cast<std::size_t>(members));  // in this group
  const int own = rank();
  check_mpi(MPI_Allgather(&own, 1, MPI_INT, places.data(), 1, MPI_INT, part->comm), "MPI_Allgather");
  for (const int place : places) {
    const auto index = static_cast<std::size_t>(place);
    part->world_ranks.push_back(group_->world_ranks[index]);
    part->hosts.push_back(group_->hosts[index]);
    part->host_ranks.push_back(group_->host_ranks[index]);
  }
  part->shared_memory = group_->shared_memory;
  part->name = name;
  return make_group_communicator(part);
}

/// A block that the group's first rank makes and all attach to.
std::shared_ptr<std::byte> common_block(HostMemory& memory, std::size_t bytes, const MessageGroup& group) {
  std::uint64_t token = group.rank == 0 ? memory.create_block(bytes) : 0;
  check_mpi(MPI_Bcast(&token, 1, MPI_UINT64_T, 0, group.comm), "MPI_Bcast");
  auto block = memory.attach_block(token, bytes);
  check_mpi(MPI_Barrier(group.comm), "MPI_Barrier");
  if (group.rank == 0) memory.forget_block(token);
  return block;
}

}  // namespace

void check_mpi(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw RunError(fmt::format("{} failed: {}", call, std::string(text, static_cast<std::size_t>(length))));
}

MessageGroup::~MessageGroup() {
  const bool orderly = std::uncaught_exceptions() == 0 && !host->progress.board().failed();
  if (comm != MPI_COMM_NULL && comm != MPI_COMM_WORLD && orderly) MPI_Comm_free(&comm);
}

bool MessageGroup::on_one_host() const {
  return std::ranges::all_of(hosts, [this](int other) { return other == hosts.front(); });
}

std::unique_ptr<Communicator> make_group_communicator(std::shared_ptr<MessageGroup> group) {
  if (!group->shared_memory || !group->on_one_host()) return std::make_unique<MessageCommunicator>(std::move(group));
  GroupBoard board(common_block(*group->host->memory, GroupBoard::bytes(group->size()), *group), group->size());
  return std::make_unique<SharedCommunicator>(std::make_shared<SharedGroup>(
      SharedGroup{group->host, std::move(board), group->host_ranks, group->world_ranks, group->rank, group->name}));
}

}  // namespace reckon
