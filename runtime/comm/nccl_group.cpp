#include "runtime/comm/nccl_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <numeric>

#include "plan/errors.h"
#include "runtime/comm/launch_place.h"
#include "runtime/comm/nccl_communicator.h"
#include "runtime/comm/nccl_staging.h"
#include "runtime/comm/rendezvous_server.h"
#include "runtime/comm/wire.h"

namespace reckon {
namespace {

// Children share their parent's buffers: nothing of a lane runs beside it, because all groups of a lane use one stream.
ncclConfig_t lane_config() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.splitShare = 1;
  return config;
}

class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(std::shared_ptr<NcclGroup> group)
      : Communicator(group->rank, group->size(), group->name),
        group_(std::move(group)),
        sent_(static_cast<std::size_t>(size())),
        received_(static_cast<std::size_t>(size())) {}

  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override;
  void fail(const std::string& message) override { group_->host->rendezvous().fail(message); }
  Bytes library_memory() const override { return group_->library_memory; }

 private:
  std::shared_ptr<PendingOperation> start(Operation operation) override;

  std::shared_ptr<NcclGroup> group_;
  std::int64_t calls_ = 0, splits_ = 0;
  std::vector<std::int64_t> sent_, received_;  // messages by peer
};

/// The communicator of a group whose lanes exist; `free_before` them.
std::unique_ptr<Communicator> finished(const std::shared_ptr<NcclGroup>& group, std::int64_t free_before) {
  NcclRank& host = *group->host;
  constexpr std::int64_t kBytes = kPulseWords * sizeof(std::int32_t);
  group->pulse = host.allocate(kBytes);
  check_cuda(cudaMemset(group->pulse, 0, kBytes), "cudaMemset", host.place());
  host.rendezvous().open_group(group->key, group->name, group->world_ranks);
  make_first_calls(*group);
  group->library_memory = Bytes(std::max<std::int64_t>(0, free_before - host.free_memory() - kBytes));
  return std::make_unique<NcclCommunicator>(group);
}

std::shared_ptr<PendingOperation> NcclCommunicator::start(Operation operation) {
  NcclRank& host = *group_->host;
  host.check();
  AnnouncedCall announced{group_->key, rank(), 0, std::move(operation)};
  const OperationKind kind = announced.operation.kind;
  const auto peer = static_cast<std::size_t>(announced.operation.peer);
  if (kind == OperationKind::send) announced.number = ++sent_[peer];
  else if (kind == OperationKind::receive) announced.number = ++received_[peer];
  else announced.number = ++calls_;
  host.rendezvous().announce(announced);

  const auto call = std::make_shared<NcclCall>(group_, std::move(announced));
  if (kind != OperationKind::send && kind != OperationKind::receive) {
    group_->waiting->start(host);
    issue_collective(*group_, *call);
  } else if (described_count(call->call().operation) == 0) {
    call->started(host.lane(LaneKind::messages), {}, {});  // NCCL moves no empty messages
  } else {
    group_->waiting->add(call);
  }
  return call;
}

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key, const std::string& name) {
  struct Choice {
    std::int64_t color, key;
    int member;
  };
  NcclRank& host = *group_->host;
  const std::int64_t free_before = host.free_memory();
  barrier().wait();  // NCCL wants nothing in flight; this starts waiting messages, too
  const std::string meeting = fmt::format("{}/{}", group_->key, ++splits_);
  const std::vector<std::string> all =
      host.rendezvous().gather(meeting, group_->key, rank(), WireWriter().number(color).number(key).take(),
                               fmt::format("split of group {} into {}", this->name(), name));
  std::vector<Choice> chosen;
  for (int member = 0; member < size(); ++member) {
    WireReader reader(all[static_cast<std::size_t>(member)]);
    const std::int64_t its_color = reader.number(), its_key = reader.number();
    if (color >= 0 && its_color == color) chosen.push_back({its_color, its_key, member});
  }
  std::ranges::stable_sort(chosen, {}, &Choice::key);

  const auto group = std::make_shared<NcclGroup>();
  group->host = group_->host;
  group->waiting = group_->waiting;
  group->key = fmt::format("{}:{}", meeting, color);
  group->name = name;
  for (const Choice& choice : chosen) {
    if (choice.member == rank()) group->rank = static_cast<int>(group->world_ranks.size());
    group->world_ranks.push_back(group_->world_ranks[static_cast<std::size_t>(choice.member)]);
  }
  const auto child_of = [&](LaneGroup& parent) -> LaneGroup* {
    return host.split_group(parent, name, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, lane_config());
  };
  group->collectives = child_of(*group_->collectives);
  group->messages = child_of(*group_->messages);
  if (color < 0) return nullptr;
  return finished(group, free_before);
}

// --- the world ----------------------------------------------------------------------------------------------------

/// The machine this runs on, whatever its containers are called.
std::string machine_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string bus_id(const NcclRank& host) {
  std::array<char, 32> text{};
  check_cuda(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), host.place().device),
             "cudaDeviceGetPCIBusId", host.place());
  return text.data();
}

std::string new_id(const NcclRank& host) {
  ncclUniqueId id{};
  check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId", host.place());
  return {id.internal, sizeof(id.internal)};
}

/// NCCL refuses two ranks on a device with a message about an invalid usage; this one says what to do.
void require_own_devices(const std::vector<std::string>& devices) {
  if (read_environment("NCCL_MULTI_RANK_GPU_ENABLE").value_or("0") == "1") return;
  for (std::size_t rank = 1; rank < devices.size(); ++rank) {
    const auto other = std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(rank), devices[rank]);
    if (other == devices.begin() + static_cast<std::ptrdiff_t>(rank)) continue;
    throw RunError(
        fmt::format("ranks {} and {} use the same GPU; start as many ranks a host as it has GPUs, each with its own "
                    "LOCAL_RANK (NCCL 2.30 and newer allow it with NCCL_MULTI_RANK_GPU_ENABLE=1)",
                    other - devices.begin(), rank));
  }
}

std::unique_ptr<Communicator> make_world(const std::shared_ptr<NcclRank>& host, int ranks) {
  const int rank = host->place().rank;
  const std::int64_t free_before = host->free_memory();
  WireWriter own;
  own.text(machine_id() + " " + bus_id(*host));
  for (int lane = 0; lane < 2; ++lane) own.text(rank == 0 ? new_id(*host) : "");
  const std::vector<std::string> all =
      host->rendezvous().gather("start", "world", rank, own.take(), "start of the run");
  std::vector<std::string> devices, ids;
  for (int member = 0; member < ranks; ++member) {
    WireReader reader(all[static_cast<std::size_t>(member)]);
    devices.push_back(reader.text());
    if (member == 0) ids = {reader.text(), reader.text()};
  }
  require_own_devices(devices);

  const auto group = std::make_shared<NcclGroup>();
  group->host = host;
  group->waiting = std::make_shared<MessageBatch>();
  group->key = group->name = "world";
  group->rank = rank;
  group->world_ranks.resize(static_cast<std::size_t>(ranks));
  std::iota(group->world_ranks.begin(), group->world_ranks.end(), 0);
  const auto lane_of = [&](const std::string& bytes) {
    ncclUniqueId id{};
    std::memcpy(id.internal, bytes.data(), std::min(bytes.size(), sizeof(id.internal)));
    ncclConfig_t config = lane_config();
    return &host->new_group("world", "ncclCommInitRankConfig", [&](ncclComm_t* handle) {
      return ncclCommInitRankConfig(handle, ranks, id, rank, &config);  // unchecked: new_group does
    });
  };
  group->collectives = lane_of(ids[0]);
  group->messages = lane_of(ids[1]);
  return finished(group, free_before);
}

}  // namespace

bool nccl_is_built_in() {
  return true;
}

int nccl_devices(std::string& reason) {
  return usable_devices(reason);
}

void run_nccl_rank(int rank, int ranks, int device, const std::shared_ptr<Rendezvous>& rendezvous,
                   const CommunicatorOptions& options, const std::function<void(Communicator& world)>& body) {
  const auto tell = [&](const std::exception& error, ExitCode code) {
    rendezvous->fail(fmt::format("rank {} failed: {}", rank, error.what()), code);
  };
  std::shared_ptr<NcclRank> host;  // both outlive the telling of a failure, so that no peer waits for us meanwhile
  std::unique_ptr<Communicator> world;
  try {
    host = std::make_shared<NcclRank>(rank, device, rendezvous, options);
    world = make_world(host, ranks);
    body(*staged(*world, host->place()));
    world->barrier().wait();  // nobody leaves while a peer still needs it, nor before all calls have been compared
    rendezvous->gather("end", "world", rank, {}, "end of the run");
  } catch (const Error& error) {
    tell(error, error.exit_code());
    throw;
  } catch (const std::exception& error) {
    tell(error, ExitCode::run_failed);
    throw;
  }
}

void run_rank_over_nccl(int ranks, const CommunicatorOptions& options,
                        const std::function<void(Communicator& world)>& body) {
  const LaunchPlace place = launch_place();
  if (ranks != 0 && ranks != place.ranks)
    throw RunError(fmt::format("the plan needs {} ranks, the launcher started {} processes", ranks, place.ranks));
  std::string reason;
  const int devices = usable_devices(reason);
  if (devices == 0) throw RunError(fmt::format("the nccl backend needs a GPU on every rank's host; {}", reason));
  if (place.local_rank >= devices)
    throw ConfigError(fmt::format("rank {} is number {} on its host, which has {} GPU{}; start at most one rank a GPU",
                                  place.rank, place.local_rank, devices, devices == 1 ? "" : "s"));
  std::unique_ptr<RendezvousServer> server;
  if (place.rank == 0)
    server = std::make_unique<RendezvousServer>(place.address, place.port, place.ranks, options.timeout);
  const auto rendezvous = std::make_shared<Rendezvous>(place.address, server ? server->port() : place.port, place.rank,
                                                       place.ranks, options.timeout);
  run_nccl_rank(place.rank, place.ranks, place.local_rank, rendezvous, options, body);
}

}  // namespace reckon
