// Order of dimensions, fastest first: tensor, ulysses, ring, data, pipeline. Groups that divide data x context (expert,
// ZeRO shards) take consecutive ranks of it, as Megatron's expert groups do, so that they stay inside a node.
#include "plan/rank_grid.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace reckon {

namespace {

std::int64_t shard_size(const ParallelSpec& parallel, std::int64_t gradient_ranks) {
  if (parallel.zero == 0) return 1;
  return parallel.zero_group == 0 ? gradient_ranks : parallel.zero_group;
}

/// Ranks first, first + stride, ...: every group is one of these.
struct Progression {
  std::int64_t first = 0, stride = 1, count = 1;

  std::int64_t operator[](std::int64_t i) const { return first + i * stride; }
};

/// The group that takes `count` values of a dimension, `step` values apart. `position` is the rank's place in that
/// dimension, `unit` the rank distance of neighbouring places.
Progression along(std::int64_t rank, std::int64_t position, std::int64_t unit, std::int64_t step, std::int64_t count) {
  const std::int64_t place = position / step % count;
  return {rank - place * step * unit, step * unit, count};
}

/// Neighbouring members that share a node, in all groups alike; 0 where nodes cut the groups unevenly. A group and its
/// siblings fill an aligned run of stride x count ranks.
std::int64_t members_on_node(const Progression& group, std::int64_t world, std::int64_t devices_per_node) {
  const std::int64_t span = group.stride * group.count;
  if (group.count == 1 || group.stride >= devices_per_node) return 1;
  if (world <= devices_per_node) return group.count;
  if (span <= devices_per_node) return devices_per_node % span == 0 ? group.count : 0;
  return devices_per_node % group.stride == 0 && span % devices_per_node == 0 ? devices_per_node / group.stride : 0;
}

Progression group_of(const ParallelSpec& parallel, const Coordinates& at, Group group, std::int64_t rank) {
  const std::int64_t tensor = parallel.tensor, context = parallel.ulysses * parallel.ring;
  const std::int64_t gradient = context * parallel.data, shard = shard_size(parallel, gradient);
  const std::int64_t place = at.ulysses + parallel.ulysses * (at.ring + parallel.ring * at.data);  // in gradient
  const std::int64_t last = parallel.pipeline - 1;
  switch (group) {
    case Group::tensor: return along(rank, at.tensor, 1, 1, tensor);
    case Group::ulysses: return along(rank, place, tensor, 1, parallel.ulysses);
    case Group::ring: return along(rank, place, tensor, parallel.ulysses, parallel.ring);
    case Group::data: return along(rank, place, tensor, context, parallel.data);
    case Group::gradient: return along(rank, place, tensor, 1, gradient);
    case Group::expert: return along(rank, place, tensor, 1, parallel.expert);
    case Group::expert_gradient: return along(rank, place, tensor, parallel.expert, gradient / parallel.expert);
    case Group::shard: return along(rank, place, tensor, 1, shard);
    case Group::replica: return along(rank, place, tensor, shard, gradient / shard);
    case Group::pipeline: return along(rank, at.pipeline, tensor * gradient, 1, parallel.pipeline);
    case Group::embedding:
      if (last == 0 || (at.pipeline != 0 && at.pipeline != last)) return {rank, 1, 1};
      return along(rank, at.pipeline, tensor * gradient, last, 2);
    case Group::world: return {0, 1, tensor * gradient * parallel.pipeline};
    case Group::gradient_inside:
    case Group::gradient_across: break;  // they need the nodes, see part_of_sum
  }
  throw std::logic_error("this group needs a grid that knows its nodes");
}

/// The ranks over which gradients are summed first, cut at node borders: those of one node, or one of each.
Progression part_of_sum(const ParallelSpec& parallel, const Coordinates& at, Group group, std::int64_t rank,
                        std::int64_t devices_per_node) {
  const Progression all = group_of(parallel, at, parallel.zero == 0 ? Group::gradient : Group::shard, rank);
  const std::int64_t world = parallel.tensor * parallel.ulysses * parallel.ring * parallel.data * parallel.pipeline;
  const std::int64_t inside = std::max<std::int64_t>(1, members_on_node(all, world, devices_per_node));
  const std::int64_t place = (rank - all.first) / all.stride;
  if (group == Group::gradient_inside) return along(rank, place, all.stride, 1, inside);
  return along(rank, place, all.stride, inside, all.count / inside);
}

Progression progression_of(const ParallelSpec& parallel, std::int64_t devices_per_node, Group group,
                           const Coordinates& at, std::int64_t rank) {
  if (devices_per_node > 0 && (group == Group::gradient_inside || group == Group::gradient_across))
    return part_of_sum(parallel, at, group, rank, devices_per_node);
  return group_of(parallel, at, group, rank);
}

struct NodeSpread {
  std::int64_t nodes = 0, fullest = 0;
};

/// Members that come before rank `end`.
std::int64_t members_before(const Progression& group, std::int64_t end) {
  return std::clamp<std::int64_t>((end - group.first + group.stride - 1) / group.stride, 0, group.count);
}

/// Without a walk over the members, of which a group may have a million. Ranks ascend, so the members of one node are
/// neighbours, and how a node is filled repeats after `stride` nodes.
NodeSpread spread_over_nodes(const Progression& group, std::int64_t devices_per_node) {
  if (group.stride >= devices_per_node) return {group.count, 1};
  const std::int64_t first = group.first / devices_per_node, last = group[group.count - 1] / devices_per_node;
  NodeSpread spread{last - first + 1, 0};
  for (std::int64_t node = first; node <= std::min(last, first + group.stride); ++node)
    spread.fullest = std::max(spread.fullest, members_before(group, (node + 1) * devices_per_node) -
                                                  members_before(group, node * devices_per_node));
  return spread;
}

}  // namespace

RankGrid::RankGrid(const ParallelSpec& parallel) : parallel_(parallel) {
  const std::int64_t gradient = parallel.data * parallel.ulysses * parallel.ring;
  const std::int64_t shard = shard_size(parallel, gradient);
  const bool positive = parallel.tensor > 0 && parallel.pipeline > 0 && gradient > 0 && parallel.ulysses > 0 &&
                        parallel.ring > 0 && parallel.expert > 0 && shard > 0;
  if (!positive || gradient % parallel.expert != 0 || gradient % shard != 0)
    throw std::logic_error("rank grid of an unchecked plan: expert and zero_group must divide data x ulysses x ring");
}

RankGrid::RankGrid(const Plan& plan) : RankGrid(plan.parallel) {
  devices_per_node_ = std::max<std::int64_t>(1, plan.hardware.devices_per_node);
}

std::int64_t RankGrid::world_size() const {
  return parallel_.tensor * parallel_.ulysses * parallel_.ring * parallel_.data * parallel_.pipeline;
}

Coordinates RankGrid::coordinates(std::int64_t rank) const {
  if (rank < 0 || rank >= world_size())
    throw std::out_of_range("rank " + std::to_string(rank) + " is outside a world of " + std::to_string(world_size()));
  Coordinates at;
  at.tensor = rank % parallel_.tensor;
  rank /= parallel_.tensor;
  at.ulysses = rank % parallel_.ulysses;
  rank /= parallel_.ulysses;
  at.ring = rank % parallel_.ring;
  rank /= parallel_.ring;
  at.data = rank % parallel_.data;
  at.pipeline = rank / parallel_.data;
  return at;
}

std::int64_t RankGrid::rank(const Coordinates& at) const {
  return at.tensor +
         parallel_.tensor *
             (at.ulysses + parallel_.ulysses * (at.ring + parallel_.ring * (at.data + parallel_.data * at.pipeline)));
}

std::vector<std::int64_t> RankGrid::members(Group group, std::int64_t rank) const {
  const Progression all = progression_of(parallel_, devices_per_node_, group, coordinates(rank), rank);
  std::vector<std::int64_t> ranks;
  for (std::int64_t i = 0; i < all.count; ++i) ranks.push_back(all[i]);
  return ranks;
}

std::int64_t RankGrid::size(Group group) const {
  return progression_of(parallel_, devices_per_node_, group, {}, 0).count;
}

bool RankGrid::lies_evenly(Group group, std::int64_t devices_per_node) const {
  return members_on_node(group_of(parallel_, {}, group, 0), world_size(), devices_per_node) > 0;
}

GroupLayout RankGrid::layout(Group group, std::int64_t devices_per_node) const {
  const NodeSpread spread =
      spread_over_nodes(progression_of(parallel_, devices_per_node_, group, {}, 0), devices_per_node);
  GroupLayout layout{size(group), spread.fullest, spread.nodes, 1};
  if (layout.nodes == 1) return layout;

  layout.siblings = 0;  // the groups that leave the node of rank 0, each counted at its first member
  for (std::int64_t rank = 0; rank < std::min(devices_per_node, world_size()); ++rank) {
    const Progression sibling = progression_of(parallel_, devices_per_node_, group, coordinates(rank), rank);
    if (sibling.first == rank && spread_over_nodes(sibling, devices_per_node).nodes > 1) ++layout.siblings;
  }
  return layout;
}

}  // namespace reckon
