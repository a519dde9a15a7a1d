#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/comm/board.h"
#include "runtime/comm/nccl_group.h"

namespace reckon {
namespace {

// Looking is cheap and a short call ends soon; a long one is looked at now and then.
constexpr std::int64_t kSpinNanoseconds = 200000;
constexpr std::chrono::microseconds kBetweenLooks{50};

}  // namespace

NcclCall::NcclCall(std::shared_ptr<NcclGroup> group, AnnouncedCall call)
    : group_(std::move(group)), call_(std::move(call)) {
  moments_.issued = monotonic_nanoseconds();
}

void NcclCall::started(const DeviceLane& lane, EventOwner met, EventOwner end) {
  lane_ = &lane;
  met_ = std::move(met);
  end_ = std::move(end);
  if (!end_) {  // nothing to do
    moments_.completed = monotonic_nanoseconds();
    complete_ = true;
  }
}

bool NcclCall::complete() {
  if (complete_) return true;
  if (!lane_->happened(end_)) return false;
  moments_.completed = std::min(lane_->moment(end_), monotonic_nanoseconds());
  if (met_) moments_.met = lane_->moment(met_);
  met_.reset();
  end_.reset();
  complete_ = true;
  return true;
}

bool NcclCall::done() {
  NcclRank& host = *group_->host;
  host.check();
  group_->waiting->start(host);
  return complete();
}

void NcclCall::wait() {
  NcclRank& host = *group_->host;
  const std::int64_t began = monotonic_nanoseconds();
  const std::int64_t until = began + static_cast<std::int64_t>(host.options().timeout.value * 1e9);
  moments_.wait_began = began;
  host.check();
  group_->waiting->start(host);
  while (!complete()) {
    host.check();
    const std::int64_t now = monotonic_nanoseconds();
    if (now > until) host.rendezvous().overdue(call_, host.options().timeout);
    else if (now - began < kSpinNanoseconds) sched_yield();
    else std::this_thread::sleep_for(kBetweenLooks);
  }
  moments_.wait_ended = monotonic_nanoseconds();
}

void MessageBatch::start(NcclRank& host) {
  if (calls_.empty()) return;
  std::vector<std::shared_ptr<NcclCall>> calls;
  calls.swap(calls_);
  DeviceLane& lane = host.lane(LaneKind::messages);
  const CallPlace place = host.place();
  const std::lock_guard lock(host.issuing());
  lane.tie_clocks();
  lane.follow(static_cast<cudaStream_t>(host.options().compute_stream));
  check_nccl(ncclGroupStart(), "ncclGroupStart", place);
  std::vector<LaneGroup*> used;
  for (const auto& call : calls) {
    LaneGroup& group = *call->group().messages;
    const Operation& operation = call->call().operation;
    host.require_running(group);
    if (std::ranges::find(used, &group) == used.end()) used.push_back(&group);
    group.last = call->call();
    const auto bytes = static_cast<std::size_t>(operation.kind == OperationKind::send ? operation.send.bytes()
                                                                                      : operation.receive.bytes());
    if (operation.kind == OperationKind::send)
      check_nccl(ncclSend(operation.send.address, bytes, ncclUint8, operation.peer, group.handle, lane.stream()),
                 "ncclSend", place, group.handle);
    else
      check_nccl(ncclRecv(operation.receive.address, bytes, ncclUint8, operation.peer, group.handle, lane.stream()),
                 "ncclRecv", place, group.handle);
  }
  check_nccl(ncclGroupEnd(), "ncclGroupEnd", place, used.front()->handle);
  for (LaneGroup* group : used) host.settle(*group, "ncclGroupEnd");
  const EventOwner end = lane.mark();
  for (const auto& call : calls) call->started(lane, {}, end);
}

}  // namespace reckon
