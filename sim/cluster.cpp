#include "sim/cluster.h"

#include <array>
#include <numeric>
#include <utility>

#include "plan/core_sharing.h"
#include "plan/rank_grid.h"
#include "sim/streams.h"

namespace reckon {
namespace {

constexpr int kLinksPerRank = 4;
enum Direction : int { kOut, kIn };

class ClusterBuilder {
 public:
  ClusterBuilder(const Plan& plan, const ClusterOptions& options)
      : plan_(plan),
        grid_(plan.parallel),
        folded_(!options.unfolded && !is_disturbed(plan.sim)),
        messages_share_links_(options.messages_share_links) {
    for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
      const std::int64_t count = folded_ ? 1 : grid_.world_size() / plan.parallel.pipeline;
      const std::int64_t first = grid_.rank({0, 0, 0, 0, stage});  // pipeline is the slowest dimension
      for (std::int64_t i = 0; i < count; ++i) {
        cluster_.ranks.push_back(first + i);
        cluster_.stages.push_back(static_cast<int>(stage));
      }
    }
  }

  Cluster build(const StepGraph& graph) {
    Scenario& scenario = cluster_.scenario;
    for (const StageGraph& stage : graph.stages) scenario.programs.push_back(stage.program);
    scenario.program_of_rank.assign(cluster_.stages.begin(), cluster_.stages.end());
    scenario.ports = kPorts;
    scenario.communicator_of_port.assign(cluster_.ranks.size() * kPorts, -1);
    scenario.link_capacities.assign(cluster_.ranks.size() * kLinksPerRank, 1.0);
    if (!plan_.sim.free_overlap)
      scenario.overlap = {overlap_slowdown(plan_).compute, overlap_slowdown(plan_).communication};
    constexpr std::array<std::pair<Group, Port>, 6> kGroups = {{{Group::tensor, kTensorPort},
                                                                {Group::ulysses, kUlyssesPort},
                                                                {Group::ring, kRingPort},
                                                                {Group::expert, kExpertPort},
                                                                {Group::shard, kGatherPort},
                                                                {Group::gradient, kReducePort}}};
    for (const auto& [group, port] : kGroups) connect_group(group, port, stream_of_port(port));
    if (plan_.virtual_stages() > 1) {
      connect_stages(kSendForwardPort, kSendForward, kActivations, 1);
      connect_stages(kSendBackwardPort, kSendBackward, kGradients, plan_.parallel.pipeline - 1);
    }
    if (plan_.parallel.pipeline > 1) connect_group(Group::embedding, kEmbeddingPort, kWorld);
    connect_world();
    return std::move(cluster_);
  }

 private:
  static Stream stream_of_port(Port port) {
    switch (port) {
      case kTensorPort: return kTensor;
      case kExpertPort: return kExpert;
      case kGatherPort:
      case kReducePort: return kStates;
      default: return kContext;
    }
  }

  int simulated() const { return static_cast<int>(cluster_.ranks.size()); }
  std::int64_t node_of(std::int64_t rank) const { return rank / plan_.hardware.devices_per_node; }

  static std::int32_t link(int rank, bool between_nodes, Direction direction) {
    return rank * kLinksPerRank + (between_nodes ? 2 : 0) + direction;
  }

  void connect(Communicator communicator, Port port) {
    const auto index = static_cast<std::int32_t>(cluster_.scenario.communicators.size());
    for (const auto& member : communicator.members)
      cluster_.scenario.communicator_of_port[static_cast<std::size_t>(member.rank * kPorts + port)] = index;
    cluster_.scenario.communicators.push_back(std::move(communicator));
  }

  /// Places among the simulated ranks of those members of a group that are simulated.
  std::vector<int> simulated_members(Group group, int rank) const {
    const std::int64_t plan_rank = cluster_.ranks[static_cast<std::size_t>(rank)];
    std::vector<int> members;
    for (const std::int64_t member : grid_.members(group, plan_rank)) {
      if (!folded_) members.push_back(static_cast<int>(member));
      else if (const Coordinates place = grid_.coordinates(member); grid_.rank({0, 0, 0, 0, place.pipeline}) == member)
        members.push_back(static_cast<int>(place.pipeline));
    }
    return members;
  }

  void connect_group(Group group, Port port, Stream stream) {
    const bool between_nodes = grid_.layout(group, plan_.hardware.devices_per_node).nodes > 1;
    for (int rank = 0; rank < simulated(); ++rank) {
      if (cluster_.scenario.communicator_of_port[static_cast<std::size_t>(rank * kPorts + port)] >= 0) continue;
      Communicator communicator;
      for (const int member : simulated_members(group, rank)) {
        communicator.members.push_back({member, static_cast<std::uint8_t>(stream)});
        communicator.links.push_back(link(member, between_nodes, kOut));
        communicator.links.push_back(link(member, between_nodes, kIn));
      }
      connect(std::move(communicator), port);
    }
  }

  /// Messages to the stage `step` further on (around the ring of stages).
  void connect_stages(Port port, Stream stream, Inbox inbox, std::int64_t step) {
    const std::int64_t stages = plan_.parallel.pipeline, per_stage = simulated() / stages;
    for (int rank = 0; rank < simulated(); ++rank) {
      const auto target = static_cast<int>((rank + step * per_stage) % simulated());
      const bool between_nodes = node_of(cluster_.ranks[static_cast<std::size_t>(rank)]) !=
                                 node_of(cluster_.ranks[static_cast<std::size_t>(target)]);
      Communicator communicator;
      communicator.members.push_back({rank, static_cast<std::uint8_t>(stream)});
      if (messages_share_links_ && between_nodes)
        communicator.links = {link(rank, between_nodes, kOut), link(target, between_nodes, kIn)};
      communicator.deliver_rank = target;
      communicator.deliver_inbox = inbox;
      communicator.disturbs = false;  // messages take one or two copy channels, not the multiprocessors
      connect(std::move(communicator), port);
    }
  }

  void connect_world() {
    Communicator world;
    for (int rank = 0; rank < simulated(); ++rank) world.members.push_back({rank, kWorld});
    world.disturbs = false;
    connect(std::move(world), kWorldPort);
  }

  const Plan& plan_;
  RankGrid grid_;
  bool folded_, messages_share_links_;
  Cluster cluster_;
};

}  // namespace

bool is_disturbed(const SimSpec& sim) {
  return sim.jitter > 0.0 || !sim.slow_ranks.empty();
}

Cluster make_cluster(const Plan& plan, const StepGraph& graph, const ClusterOptions& options) {
  return ClusterBuilder(plan, options).build(graph);
}

}  // namespace reckon
