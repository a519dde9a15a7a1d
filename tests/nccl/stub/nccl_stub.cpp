#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/comm/reduce_core.h"
#include "tests/nccl/stub/device_stub.h"
#include "tests/nccl/stub/faults.h"

namespace {

using namespace reckon::stub;
using reckon::ElementType;

enum class Kind { all_reduce, all_gather, reduce_scatter, broadcast };

struct Call {
  Kind kind;
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t reduction;
  int root;

  bool same_as(const Call& other) const {
    return kind == other.kind && count == other.count && type == other.type && root == other.root &&
           (reduction == other.reduction || kind == Kind::all_gather || kind == Kind::broadcast);
  }
};

std::size_t width_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt64:
    case ncclFloat64: return 8;
    case ncclInt32:
    case ncclFloat32: return 4;
    case ncclBfloat16: return 2;
    default: return 1;
  }
}

ElementType element_type(ncclDataType_t type) {
  switch (type) {
    case ncclInt64: return ElementType::int64;
    case ncclFloat64: return ElementType::fp64;
    case ncclInt32: return ElementType::int32;
    case ncclFloat32: return ElementType::fp32;
    case ncclBfloat16: return ElementType::bf16;
    default: return ElementType::uint8;
  }
}

/// One side of a message that has not met the other.
struct Waiting {
  void* address;
  std::size_t bytes;
  std::shared_ptr<bool> done;
};

/// What the ranks of a communicator share.
struct Shared {
  explicit Shared(int ranks_) : ranks(ranks_) {}

  struct Slot {
    std::map<int, Call> calls;
    bool done = false;
  };
  struct Split {
    struct Choice {
      int color, key;
      ncclComm* parent;
      ncclComm_t* target;
    };
    std::map<int, Choice> choices;
    bool done = false;
  };

  const int ranks;
  std::mutex mutex;
  std::condition_variable changed;
  int joined = 0;
  bool aborted = false;
  std::map<std::int64_t, Slot> collectives;
  std::map<std::int64_t, Split> splits;
  std::map<std::pair<int, int>, std::deque<Waiting>> sends, receives;  // sender, receiver
};

struct Message {
  ncclComm* comm;
  bool sends;
  void* address;
  std::size_t bytes;
  int peer;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<Shared> shared;
  int rank = 0, device = 0;
  std::mutex mutex;
  std::int64_t collectives = 0, splits = 0;
  std::vector<std::function<void()>> late;  // launches that the next question for the state makes
  int questions = 0;                        // since they were asked for
  std::atomic<int> in_flight{0};            // keeps the object until its stream has let go of it
};

namespace {

thread_local std::string last_text;
thread_local int group_depth = 0;
thread_local std::vector<std::pair<Message, cudaStream_t>> group_messages;

ncclResult_t refuse(ncclResult_t code, const std::string& text) {
  last_text = text;
  return code;
}

ncclResult_t failed(const char* function) {
  const int code = fault(function);
  return code == 0 ? ncclSuccess : refuse(static_cast<ncclResult_t>(code), "the stub was told to fail");
}

/// Adds from the last rank down, which is not the order of the runtime's own sums.
void reduce(const std::map<int, Call>& calls, std::size_t first, std::size_t count, std::vector<std::byte>& result) {
  const Call& any = calls.begin()->second;
  const auto kind = any.reduction == ncclSum ? reckon::Reduction::sum : reckon::Reduction::maximum;
  result.resize(count * width_of(any.type));
  reckon::reduction::with_reduction(element_type(any.type), kind, [&](auto format, auto combine) {
    using Format = decltype(format);
    using Stored = typename Format::Stored;
    for (std::size_t i = 0; i < count; ++i) {
      auto sum = Format::load(static_cast<const Stored*>(calls.rbegin()->second.send)[first + i]);
      for (auto call = std::next(calls.rbegin()); call != calls.rend(); ++call)
        sum = combine(sum, Format::load(static_cast<const Stored*>(call->second.send)[first + i]));
      reinterpret_cast<Stored*>(result.data())[i] = Format::store(sum);
    }
  });
}

void perform(const std::map<int, Call>& calls) {
  const Call& any = calls.begin()->second;
  const std::size_t bytes = any.count * width_of(any.type);
  std::map<int, std::vector<std::byte>> results;  // formed before anything is written: calls may be in place
  for (const auto& [rank, call] : calls) {
    std::vector<std::byte>& result = results[rank];
    switch (any.kind) {
      case Kind::all_reduce: reduce(calls, 0, any.count, result); break;
      case Kind::reduce_scatter: reduce(calls, static_cast<std::size_t>(rank) * any.count, any.count, result); break;
      case Kind::broadcast:
        result.resize(bytes);
        std::memcpy(result.data(), calls.at(any.root).send, bytes);
        break;
      case Kind::all_gather:
        for (const auto& [peer, other] : calls) {
          const auto* from = static_cast<const std::byte*>(other.send);
          result.insert(result.end(), from, from + bytes);
        }
    }
  }
  for (const auto& [rank, call] : calls) std::memcpy(call.receive, results[rank].data(), results[rank].size());
}

void wait_for_abort(Shared& shared, std::unique_lock<std::mutex>& lock) {
  shared.changed.wait(lock, [&] { return shared.aborted; });
}

void run_collective(ncclComm& comm, std::int64_t number, const Call& call) {
  Shared& shared = *comm.shared;
  std::unique_lock lock(shared.mutex);
  if (hangs(comm.device)) return wait_for_abort(shared, lock);
  if (shared.aborted) return;  // the buffers of a rank that came before may be gone
  Shared::Slot& slot = shared.collectives[number];
  slot.calls[comm.rank] = call;
  if (static_cast<int>(slot.calls.size()) == shared.ranks) {
    for (const auto& [rank, other] : slot.calls)
      if (!other.same_as(call)) return wait_for_abort(shared, lock);  // so do the others: nobody marks it done
    perform(slot.calls);
    slot.done = true;
    shared.changed.notify_all();
  }
  shared.changed.wait(lock, [&] { return slot.done || shared.aborted; });
}

void match(Message& message, const std::shared_ptr<bool>& done) {
  Shared& shared = *message.comm->shared;
  const std::pair<int, int> pair =
      message.sends ? std::pair{message.comm->rank, message.peer} : std::pair{message.peer, message.comm->rank};
  auto& others = message.sends ? shared.receives[pair] : shared.sends[pair];
  if (others.empty()) {
    (message.sends ? shared.sends : shared.receives)[pair].push_back({message.address, message.bytes, done});
    return;
  }
  const Waiting other = others.front();
  others.pop_front();
  if (other.bytes != message.bytes) return;  // never ends
  if (message.sends) std::memcpy(other.address, message.address, message.bytes);
  else std::memcpy(message.address, other.address, message.bytes);
  *done = *other.done = true;
  shared.changed.notify_all();
}

void run_messages(std::vector<Message>& messages) {
  std::vector<std::shared_ptr<bool>> done;
  for (Message& message : messages) {
    done.push_back(std::make_shared<bool>(false));
    Shared& shared = *message.comm->shared;
    std::unique_lock lock(shared.mutex);
    if (hangs(message.comm->device)) return wait_for_abort(shared, lock);
    if (shared.aborted) return;
    match(message, done.back());
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Shared& shared = *messages[i].comm->shared;
    std::unique_lock lock(shared.mutex);
    shared.changed.wait(lock, [&] { return *done[i] || shared.aborted; });
  }
}

/// Communicators that do not block take work in later: the second question for their state launches it.
ncclResult_t launch_late(ncclComm& comm, std::function<void()> launch) {
  const std::lock_guard lock(comm.mutex);
  comm.late.push_back(std::move(launch));
  comm.questions = 0;
  return ncclInProgress;
}

ncclResult_t launch_collective(ncclComm* comm, cudaStream_t stream, const Call& call, std::size_t sent,
                               std::size_t received) {
  if (!is_device_memory(call.send, sent) || !is_device_memory(call.receive, received))
    return refuse(ncclInvalidArgument, "a buffer is no device memory");
  const std::int64_t number = ++comm->collectives;
  ++comm->in_flight;
  return launch_late(*comm, [=] {
    enqueue(stream, [=] {
      run_collective(*comm, number, call);
      --comm->in_flight;
    });
  });
}

/// With the shared mutex held: children of a split that all ranks have asked for.
void make_children(Shared::Split& split) {
  std::map<int, std::vector<std::pair<int, int>>> members;  // colour -> key, parent's rank
  for (const auto& [rank, choice] : split.choices)
    if (choice.color != NCCL_SPLIT_NOCOLOR) members[choice.color].push_back({choice.key, rank});
  for (auto& [color, list] : members) {
    std::ranges::sort(list);
    const auto shared = std::make_shared<Shared>(static_cast<int>(list.size()));
    shared->joined = shared->ranks;
    for (std::size_t place = 0; place < list.size(); ++place) {
      const Shared::Split::Choice& choice = split.choices[list[place].second];
      auto* child = new ncclComm;
      count_communicators(1);
      child->shared = shared;
      child->rank = static_cast<int>(place);
      child->device = choice.parent->device;
      *choice.target = child;
    }
  }
  split.done = true;
}

std::mutex worlds_mutex;
std::map<std::string, std::shared_ptr<Shared>> worlds;  // by unique id

void let_go(ncclComm* comm) {
  while (comm->in_flight > 0) std::this_thread::yield();
  delete comm;
  count_communicators(-1);
}

}  // namespace

// --- NCCL ---------------------------------------------------------------------------------------------------------

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return failed("ncclGetVersion");
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> next{1};
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->internal, sizeof(id->internal), "stub-%d", next++);
  return failed("ncclGetUniqueId");
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (const ncclResult_t error = failed("ncclCommInitRankConfig")) return error;
  if (config->blocking != 0) return refuse(ncclInvalidUsage, "the stub knows communicators that do not block only");
  auto* fresh = new ncclComm;
  count_communicators(1);
  fresh->rank = rank;
  fresh->device = current_device();
  {
    const std::lock_guard lock(worlds_mutex);
    auto& shared = worlds[id.internal];
    if (!shared) shared = std::make_shared<Shared>(ranks);
    fresh->shared = shared;
  }
  {
    const std::lock_guard lock(fresh->shared->mutex);
    ++fresh->shared->joined;
  }
  *comm = fresh;
  return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t*) {
  if (const ncclResult_t error = failed("ncclCommSplit")) return error;
  *child = nullptr;
  const std::lock_guard lock(comm->shared->mutex);
  if (comm->shared->aborted) return ncclInProgress;  // the others' handles may be gone
  Shared::Split& split = comm->shared->splits[++comm->splits];
  split.choices[comm->rank] = {color, key, comm, child};
  if (static_cast<int>(split.choices.size()) == comm->shared->ranks) make_children(split);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (const ncclResult_t error = failed("ncclCommGetAsyncError")) return error;
  *state = static_cast<ncclResult_t>(async_error(comm->device));
  if (*state != ncclSuccess) return refuse(ncclSuccess, "the stub was told to report it");
  {
    const std::lock_guard lock(comm->shared->mutex);
    const bool splitting = comm->splits > 0 && !comm->shared->splits[comm->splits].done;
    if (comm->shared->joined < comm->shared->ranks || splitting) *state = ncclInProgress;
  }
  const std::lock_guard lock(comm->mutex);
  if (comm->late.empty()) return ncclSuccess;
  if (++comm->questions < 2) {
    *state = ncclInProgress;
    return ncclSuccess;
  }
  for (const auto& launch : comm->late) launch();
  comm->late.clear();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) {
  return failed("ncclCommFinalize");
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (const ncclResult_t error = failed("ncclCommDestroy")) return error;
  let_go(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  fault("ncclCommAbort");
  {
    const std::lock_guard lock(comm->shared->mutex);
    comm->shared->aborted = true;
    comm->shared->changed.notify_all();
  }
  {
    const std::lock_guard lock(comm->mutex);
    for (const auto& launch : comm->late) launch();
    comm->late.clear();
  }
  let_go(comm);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclSystemError: return "unhandled system error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "an NCCL error";
  }
}

const char* ncclGetLastError(ncclComm_t) {
  return last_text.c_str();
}

ncclResult_t ncclGroupStart() {
  if (const ncclResult_t error = failed("ncclGroupStart")) return error;
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (const ncclResult_t error = failed("ncclGroupEnd")) return error;
  if (--group_depth > 0 || group_messages.empty()) return ncclSuccess;
  std::vector<Message> messages;
  const cudaStream_t stream = group_messages.front().second;  // the runtime uses one stream a group
  for (const auto& [message, its_stream] : group_messages) messages.push_back(message);
  group_messages.clear();
  for (const Message& message : messages) ++message.comm->in_flight;
  return launch_late(*messages.front().comm, [=] {
    enqueue(stream, [=]() mutable {
      run_messages(messages);
      for (const Message& message : messages) --message.comm->in_flight;
    });
  });
}

ncclResult_t ncclSend(const void* address, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (const ncclResult_t error = failed("ncclSend")) return error;
  const std::size_t bytes = count * width_of(type);
  if (!is_device_memory(address, bytes)) return refuse(ncclInvalidArgument, "a buffer is no device memory");
  group_messages.push_back({{comm, true, const_cast<void*>(address), bytes, peer}, stream});
  return ncclSuccess;
}

ncclResult_t ncclRecv(void* address, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (const ncclResult_t error = failed("ncclRecv")) return error;
  const std::size_t bytes = count * width_of(type);
  if (!is_device_memory(address, bytes)) return refuse(ncclInvalidArgument, "a buffer is no device memory");
  group_messages.push_back({{comm, false, address, bytes, peer}, stream});
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t error = failed("ncclAllReduce")) return error;
  const std::size_t bytes = count * width_of(type);
  return launch_collective(comm, stream, {Kind::all_reduce, send, receive, count, type, reduction, 0}, bytes, bytes);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t error = failed("ncclReduceScatter")) return error;
  const std::size_t bytes = count * width_of(type);
  return launch_collective(comm, stream, {Kind::reduce_scatter, send, receive, count, type, reduction, 0},
                           bytes * static_cast<std::size_t>(comm->shared->ranks), bytes);
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  if (const ncclResult_t error = failed("ncclAllGather")) return error;
  const std::size_t bytes = count * width_of(type);
  return launch_collective(comm, stream, {Kind::all_gather, send, receive, count, type, ncclSum, 0}, bytes,
                           bytes * static_cast<std::size_t>(comm->shared->ranks));
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t error = failed("ncclBroadcast")) return error;
  const std::size_t bytes = count * width_of(type);
  return launch_collective(comm, stream, {Kind::broadcast, send, receive, count, type, ncclSum, root}, bytes, bytes);
}

}  // extern "C"
