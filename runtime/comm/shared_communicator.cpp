#include "runtime/comm/shared_communicator.h"

#include <algorithm>
#include <array>
#include <exception>

namespace reckon {

void SharedGroup::ring_peers() {
  for (int member = 0; member < size(); ++member)
    if (member != rank) ring(member);
}

SharedCommunicator::SharedCommunicator(std::shared_ptr<SharedGroup> group)
    : Communicator(group->rank, group->size(), group->name),
      group_(std::move(group)),
      sent_(static_cast<std::size_t>(size())),
      received_(static_cast<std::size_t>(size())) {}

SharedCommunicator::~SharedCommunicator() {
  group_->board.member(rank()).left.store(1);
  group_->ring_peers();
}

void SharedCommunicator::fail(const std::string& message) {
  group_->host->progress.board().fail(message, ExitCode::run_failed);
}

std::shared_ptr<PendingOperation> SharedCommunicator::start(Operation operation) {
  std::shared_ptr<ActiveCall> call;
  const auto peer = static_cast<std::size_t>(operation.peer);
  switch (operation.kind) {
    case OperationKind::send: call = make_message_call(group_, std::move(operation), ++sent_[peer]); break;
    case OperationKind::receive: call = make_message_call(group_, std::move(operation), ++received_[peer]); break;
    default: call = make_collective_call(group_, std::move(operation), ++calls_);
  }
  group_->host->progress.add(call);
  return call;
}

// The first member of each new group makes its board; its token travels in a gather of the old group.
std::unique_ptr<Communicator> SharedCommunicator::split(int color, int key, const std::string& name) {
  struct Choice {
    std::int64_t color, key, rank;
  };
  const std::array<std::int64_t, 2> own{color, key};
  std::vector<std::int64_t> all(static_cast<std::size_t>(2 * size()));
  all_gather(view(own), view(all)).wait();

  std::vector<Choice> chosen;
  for (int member = 0; member < size(); ++member) {
    const auto at = static_cast<std::size_t>(2 * member);
    if (all[at] == color && color >= 0) chosen.push_back({all[at], all[at + 1], member});
  }
  std::ranges::stable_sort(chosen, {}, &Choice::key);

  HostMemory& memory = *group_->host->memory;
  const std::size_t bytes = GroupBoard::bytes(static_cast<int>(chosen.size()));
  const bool leads = !chosen.empty() && chosen.front().rank == rank();
  const std::array<std::int64_t, 1> token{leads ? static_cast<std::int64_t>(memory.create_block(bytes)) : 0};
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(size()));
  all_gather(view(token), view(tokens)).wait();

  std::unique_ptr<Communicator> result;
  if (!chosen.empty()) {
    const auto leader = static_cast<std::size_t>(chosen.front().rank);
    std::vector<int> members, world_ranks;
    int place = 0;
    for (const Choice& choice : chosen) {
      if (choice.rank == rank()) place = static_cast<int>(members.size());
      members.push_back(group_->host_rank(static_cast<int>(choice.rank)));
      world_ranks.push_back(group_->world_rank(static_cast<int>(choice.rank)));
    }
    GroupBoard board(memory.attach_block(static_cast<std::uint64_t>(tokens[leader]), bytes),
                     static_cast<int>(members.size()));
    result = std::make_unique<SharedCommunicator>(std::make_shared<SharedGroup>(
        SharedGroup{group_->host, std::move(board), std::move(members), std::move(world_ranks), place, name}));
  }
  barrier().wait();
  if (leads) memory.forget_block(static_cast<std::uint64_t>(token[0]));
  return result;
}

}  // namespace reckon
