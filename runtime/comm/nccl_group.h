// The communicator of one group over NCCL, and how its calls become NCCL calls.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/nccl_rank.h"

namespace reckon {

class NcclCall;

/// Messages that have been called for and not started, in order; of all groups of a rank.
class MessageBatch {
 public:
  void add(std::shared_ptr<NcclCall> call) { calls_.push_back(std::move(call)); }
  /// Starts them as one NCCL group, so that they proceed whatever the order of the peers' calls.
  void start(NcclRank& host);

 private:
  std::vector<std::shared_ptr<NcclCall>> calls_;
};

/// What the calls of one group share.
struct NcclGroup {
  std::shared_ptr<NcclRank> host;
  std::shared_ptr<MessageBatch> waiting;  // of the rank
  LaneGroup* collectives = nullptr;       // owned by host
  LaneGroup* messages = nullptr;
  std::string key;               // for the rendezvous
  std::string name;              // in messages
  std::vector<int> world_ranks;  // members in group order
  int rank = 0;
  std::byte* pulse = nullptr;  // device memory of kPulseWords numbers of 32 bits
  Bytes library_memory;        // of the device, after a first call

  int size() const { return static_cast<int>(world_ranks.size()); }
};

/// A call in flight: done when its event has happened.
class NcclCall final : public PendingOperation {
 public:
  NcclCall(std::shared_ptr<NcclGroup> group, AnnouncedCall call);

  void wait() override;
  bool done() override;
  OperationTime time() const override { return operation_time(moments_); }

  const AnnouncedCall& call() const { return call_; }
  NcclGroup& group() const { return *group_; }
  /// The events behind the last peer's arrival (may be null) and behind the call.
  void started(const DeviceLane& lane, EventOwner met, EventOwner end);

 private:
  bool complete();

  std::shared_ptr<NcclGroup> group_;
  AnnouncedCall call_;
  const DeviceLane* lane_ = nullptr;
  EventOwner met_, end_;
  bool complete_ = false;
  CallMoments moments_;
};

/// Words of NcclGroup::pulse: of pulses, of the first message that is sent and the first that is received.
constexpr int kPulseWords = 3;

/// The group's first calls, after which NCCL has taken its memory: connections are made when ranks first talk (those to
/// further peers, when they do).
void make_first_calls(NcclGroup& group);

/// Issues a collective on the rank's lane; the events go to `call`.
void issue_collective(NcclGroup& group, NcclCall& call);

/// Runs `body` as rank `rank` of `ranks` on `device`, in this thread; the peers are other threads or processes.
void run_nccl_rank(int rank, int ranks, int device, const std::shared_ptr<Rendezvous>& rendezvous,
                   const CommunicatorOptions& options, const std::function<void(Communicator& world)>& body);

}  // namespace reckon
