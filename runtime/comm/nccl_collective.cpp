// Collectives as NCCL calls on a stream. What adds goes through exchanges and the runtime's own sum in rank order,
// which moves as many bytes as NCCL's sums; with CommunicatorOptions::library_sums NCCL adds, in an order of its
// choice.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "runtime/comm/nccl_group.h"
#include "runtime/comm/reduce_device.h"

namespace reckon {
namespace {

// Steps of an exchange in one NCCL group; two operations each. Groups above 256 have been seen to hang
// (pytorch issue 174288), and steps are symmetric: in each, every rank sends to one and receives from one.
constexpr int kStepsPerGroup = 128;
// Sums of at most this many bytes over all ranks are formed whole on every rank: one exchange instead of two.
constexpr std::int64_t kWholeReduction = 65'536;

/// Bytes in a buffer.
struct Part {
  std::byte* address = nullptr;
  std::int64_t bytes = 0;
};

class CollectiveIssue {
 public:
  CollectiveIssue(NcclGroup& group, const AnnouncedCall& call)
      : group_(group),
        host_(*group.host),
        lane_(host_.lane(LaneKind::collectives)),
        comm_(*group.collectives),
        operation_(call.operation),
        width_(bytes_of(described_type(call.operation))) {
    comm_.last = call;
  }

  EventOwner meet();
  void move_data();

 private:
  ncclComm_t handle() const { return comm_.handle; }
  cudaStream_t stream() const { return lane_.stream(); }
  std::byte* send_at(std::int64_t element) const {  // NCCL and kernels read it only
    return static_cast<std::byte*>(const_cast<void*>(operation_.send.address)) + element * width_;
  }
  std::byte* receive_at(std::int64_t element) const {
    return static_cast<std::byte*>(operation_.receive.address) + element * width_;
  }
  Segment segment(const std::vector<std::int64_t>& counts, std::int64_t count, int member) const {
    return segment_of(counts, count, group_.size(), member);
  }
  Part sent(Segment part) const { return {send_at(part.offset), part.count * width_}; }
  Part received(Segment part) const { return {receive_at(part.offset), part.count * width_}; }

  void check(ncclResult_t result, const char* call) {
    check_nccl(result, call, host_.place(), handle());
    host_.settle(comm_, call);
  }
  void copy(Part to, const std::byte* from);
  void exchange(const std::function<Part(int peer)>& send, const std::function<Part(int peer)>& receive);
  void add_parts(Segment own, std::byte* result, const std::function<Segment(int peer)>& part);
  void add_whole();
  void all_reduce();
  void reduce_scatter();
  void all_gather();
  void all_to_all();
  void broadcast();

  NcclGroup& group_;
  NcclRank& host_;
  DeviceLane& lane_;
  LaneGroup& comm_;
  const Operation& operation_;
  std::int64_t width_;
};

/// Four bytes that come back when all ranks have sent theirs.
EventOwner CollectiveIssue::meet() {
  check(ncclAllReduce(group_.pulse, group_.pulse, 1, ncclInt32, ncclMax, handle(), stream()), "ncclAllReduce");
  return lane_.mark();
}

void CollectiveIssue::copy(Part to, const std::byte* from) {
  if (to.bytes == 0 || to.address == from) return;
  check_cuda(cudaMemcpyAsync(to.address, from, static_cast<std::size_t>(to.bytes), cudaMemcpyDeviceToDevice, stream()),
             "cudaMemcpyAsync", host_.place());
}

void CollectiveIssue::exchange(const std::function<Part(int)>& send, const std::function<Part(int)>& receive) {
  const int size = group_.size(), rank = group_.rank;
  for (int first = 1; first < size; first += kStepsPerGroup) {
    check_nccl(ncclGroupStart(), "ncclGroupStart", host_.place());
    for (int step = first; step < std::min(size, first + kStepsPerGroup); ++step) {
      const int to = (rank + step) % size, from = (rank + size - step) % size;
      const Part out = send(to), in = receive(from);
      if (out.bytes > 0)
        check_nccl(ncclSend(out.address, static_cast<std::size_t>(out.bytes), ncclUint8, to, handle(), stream()),
                   "ncclSend", host_.place(), handle());
      if (in.bytes > 0)
        check_nccl(ncclRecv(in.address, static_cast<std::size_t>(in.bytes), ncclUint8, from, handle(), stream()),
                   "ncclRecv", host_.place(), handle());
    }
    check(ncclGroupEnd(), "ncclGroupEnd");
  }
}

/// Every rank gets its part from all, and adds: result = own part of the sum.
void CollectiveIssue::add_parts(Segment own, std::byte* result, const std::function<Segment(int)>& part) {
  const std::int64_t stride = own.count * width_;
  std::byte* scratch = host_.scratch(stride * group_.size());
  exchange([&](int peer) { return sent(part(peer)); }, [&](int peer) { return Part{scratch + peer * stride, stride}; });
  reduce_on_device({send_at(own.offset), scratch, stride, group_.rank, group_.size()}, operation_.send.type,
                   operation_.reduction, own.count, result, stream());
}

void CollectiveIssue::add_whole() {
  const std::int64_t bytes = operation_.send.bytes();
  std::byte* scratch = host_.scratch(bytes * group_.size());
  check(ncclAllGather(operation_.send.address, scratch, static_cast<std::size_t>(bytes), ncclUint8, handle(), stream()),
        "ncclAllGather");
  reduce_on_device({send_at(0), scratch, bytes, group_.rank, group_.size()}, operation_.send.type, operation_.reduction,
                   operation_.send.count, operation_.receive.address, stream());
}

void CollectiveIssue::all_reduce() {
  const std::int64_t count = operation_.send.count;
  if (count == 0) return;
  if (host_.options().library_sums)
    return check(
        ncclAllReduce(operation_.send.address, operation_.receive.address, static_cast<std::size_t>(count),
                      nccl_type(operation_.send.type), nccl_reduction(operation_.reduction), handle(), stream()),
        "ncclAllReduce");
  if (operation_.send.bytes() * group_.size() <= kWholeReduction) return add_whole();
  const auto part = [&](int member) { return even_segment(count, group_.size(), member); };
  const Segment own = part(group_.rank);
  add_parts(own, receive_at(own.offset), part);
  exchange([&](int) { return received(own); }, [&](int peer) { return received(part(peer)); });
}

void CollectiveIssue::reduce_scatter() {
  const bool equal_parts = operation_.send_counts.empty();
  if (host_.options().library_sums && equal_parts && operation_.receive.count > 0)
    return check(ncclReduceScatter(operation_.send.address, operation_.receive.address,
                                   static_cast<std::size_t>(operation_.receive.count), nccl_type(operation_.send.type),
                                   nccl_reduction(operation_.reduction), handle(), stream()),
                 "ncclReduceScatter");
  const auto part = [&](int member) { return segment(operation_.send_counts, operation_.send.count, member); };
  add_parts(part(group_.rank), receive_at(0), part);
}

void CollectiveIssue::all_gather() {
  const auto part = [&](int member) { return segment(operation_.receive_counts, operation_.receive.count, member); };
  if (operation_.receive_counts.empty()) {
    if (operation_.send.count == 0) return;
    return check(ncclAllGather(operation_.send.address, operation_.receive.address,
                               static_cast<std::size_t>(operation_.send.bytes()), ncclUint8, handle(), stream()),
                 "ncclAllGather");
  }
  exchange(
      [&](int) {
        return Part{send_at(0), operation_.send.bytes()};
      },
      [&](int peer) { return received(part(peer)); });
  copy(received(part(group_.rank)), send_at(0));
}

void CollectiveIssue::all_to_all() {
  const auto out = [&](int to) { return sent(segment(operation_.send_counts, operation_.send.count, to)); };
  const auto in = [&](int from) {
    return received(segment(operation_.receive_counts, operation_.receive.count, from));
  };
  exchange(out, in);
  copy(in(group_.rank), out(group_.rank).address);
}

void CollectiveIssue::broadcast() {
  if (operation_.receive.count == 0) return;
  check(ncclBroadcast(operation_.send.address, operation_.receive.address,
                      static_cast<std::size_t>(operation_.receive.bytes()), ncclUint8, operation_.peer, handle(),
                      stream()),
        "ncclBroadcast");
}

void CollectiveIssue::move_data() {
  switch (operation_.kind) {
    case OperationKind::all_reduce: return all_reduce();
    case OperationKind::reduce_scatter: return reduce_scatter();
    case OperationKind::all_gather: return all_gather();
    case OperationKind::all_to_all: return all_to_all();
    case OperationKind::broadcast: return broadcast();
    default: return;  // a barrier is its pulse
  }
}

}  // namespace

void make_first_calls(NcclGroup& group) {
  NcclRank& host = *group.host;
  DeviceLane &collectives = host.lane(LaneKind::collectives), &messages = host.lane(LaneKind::messages);
  EventOwner first, second;
  {
    const std::lock_guard lock(host.issuing());
    host.require_running(*group.collectives);
    const AnnouncedCall nothing{group.key, group.rank, 0, {}};
    first = CollectiveIssue(group, nothing).meet();
    if (group.size() > 1) {
      const int next = (group.rank + 1) % group.size(), previous = (group.rank + group.size() - 1) % group.size();
      const ncclComm_t handle = group.messages->handle;
      const std::byte* word = group.pulse + sizeof(std::int32_t);
      check_nccl(ncclGroupStart(), "ncclGroupStart", host.place());
      check_nccl(ncclSend(word, 1, ncclInt32, next, handle, messages.stream()), "ncclSend", host.place(), handle);
      check_nccl(ncclRecv(group.pulse + 2 * sizeof(std::int32_t), 1, ncclInt32, previous, handle, messages.stream()),
                 "ncclRecv", host.place(), handle);
      check_nccl(ncclGroupEnd(), "ncclGroupEnd", host.place(), handle);
      host.settle(*group.messages, "ncclGroupEnd");
    }
    second = messages.mark();
  }
  host.await(collectives, first, fmt::format("the first call of group {}", group.name));
  host.await(messages, second, fmt::format("the first message of group {}", group.name));
}

void issue_collective(NcclGroup& group, NcclCall& call) {
  NcclRank& host = *group.host;
  DeviceLane& lane = host.lane(LaneKind::collectives);
  const std::lock_guard lock(host.issuing());
  host.require_running(*group.collectives);
  lane.tie_clocks();
  lane.follow(static_cast<cudaStream_t>(host.options().compute_stream));
  CollectiveIssue issue(group, call.call());
  EventOwner met;
  if (host.options().separate_waiting || call.call().operation.kind == OperationKind::barrier) met = issue.meet();
  issue.move_data();
  call.started(lane, met, lane.mark());
}

}  // namespace reckon
