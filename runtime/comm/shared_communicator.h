// The communicator of ranks that live on one host, as threads or as processes: calls are announced on a shared board,
// data is read straight from the peers' buffers, and every rank sums its own part in rank order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/host_memory.h"
#include "runtime/comm/progress.h"

namespace reckon {

/// One rank's place on its host, shared by all its groups.
struct HostRank {
  HostRank(int rank_, std::shared_ptr<HostMemory> memory_, HostBoard board, Seconds timeout)
      : rank(rank_), memory(std::move(memory_)), progress(std::move(board), rank_, timeout) {}

  int rank;  // index on the host board
  std::shared_ptr<HostMemory> memory;
  Progress progress;
  std::vector<std::byte> scratch;  // peers' data that is being summed; used by whoever advances calls
};

/// Ends a rank's progress when its run is over, normally or not, while the rank still exists.
class ProgressGuard {
 public:
  explicit ProgressGuard(std::shared_ptr<HostRank> host) : host_(std::move(host)) {}
  ProgressGuard(const ProgressGuard&) = delete;
  ~ProgressGuard() { host_->progress.stop(); }

 private:
  std::shared_ptr<HostRank> host_;
};

/// What the calls of one group share.
struct SharedGroup {
  std::shared_ptr<HostRank> host;
  GroupBoard board;
  std::vector<int> members;      // host ranks in group order
  std::vector<int> world_ranks;  // the same members' ranks in the world, for messages
  int rank;                      // own place in `members`
  std::string name;

  int size() const { return static_cast<int>(members.size()); }
  int host_rank(int member) const { return members[static_cast<std::size_t>(member)]; }
  int world_rank(int member) const { return world_ranks[static_cast<std::size_t>(member)]; }
  int own_world_rank() const { return world_rank(rank); }
  void ring(int member) { host->progress.board().doorbell(host_rank(member)).ring(); }
  void ring_peers();
};

class SharedCommunicator final : public Communicator {
 public:
  explicit SharedCommunicator(std::shared_ptr<SharedGroup> group);
  ~SharedCommunicator() override;

  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override;
  void fail(const std::string& message) override;

 private:
  std::shared_ptr<PendingOperation> start(Operation operation) override;

  std::shared_ptr<SharedGroup> group_;
  std::int64_t calls_ = 0;
  std::vector<std::int64_t> sent_, received_;  // messages by peer
};

/// Carries out one collective / one message on the board (shared_collective.cpp, shared_message.cpp).
std::shared_ptr<ActiveCall> make_collective_call(std::shared_ptr<SharedGroup> group, Operation operation,
                                                 std::int64_t call);
std::shared_ptr<ActiveCall> make_message_call(std::shared_ptr<SharedGroup> group, Operation operation,
                                              std::int64_t message);

}  // namespace reckon
