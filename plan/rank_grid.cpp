// Order of dimensions, fastest first: tensor, ulysses, ring, data, pipeline. Groups that divide data x context (expert,
// ZeRO shards) take consecutive ranks of it, as Megatron's expert groups do, so that they stay inside a node.
#include "plan/rank_grid.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

namespace reckon {

namespace {

std::int64_t shard_size(const ParallelSpec& parallel, std::int64_t gradient_ranks) {
  if (parallel.zero == 0) return 1;
  return parallel.zero_group == 0 ? gradient_ranks : parallel.zero_group;
}

/// `count` ranks that are `stride` apart, starting at `first`.
std::vector<std::int64_t> progression(std::int64_t first, std::int64_t stride, std::int64_t count) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t i = 0; i < count; ++i) ranks.push_back(first + i * stride);
  return ranks;
}

/// Members of the group that takes `count` values of a dimension, `step` values apart. `position` is the rank's place
/// in that dimension, `unit` the rank distance of neighbouring places.
std::vector<std::int64_t> along(std::int64_t rank, std::int64_t position, std::int64_t unit, std::int64_t step,
                                std::int64_t count) {
  const std::int64_t place = position / step % count;
  return progression(rank - place * step * unit, step * unit, count);
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
  const Coordinates at = coordinates(rank);
  const std::int64_t tensor = parallel_.tensor, context = parallel_.ulysses * parallel_.ring;
  const std::int64_t gradient = context * parallel_.data;
  const std::int64_t place = at.ulysses + parallel_.ulysses * (at.ring + parallel_.ring * at.data);  // in gradient
  const std::int64_t shard = shard_size(parallel_, gradient);
  switch (group) {
    case Group::tensor: return along(rank, at.tensor, 1, 1, tensor);
    case Group::ulysses: return along(rank, place, tensor, 1, parallel_.ulysses);
    case Group::ring: return along(rank, place, tensor, parallel_.ulysses, parallel_.ring);
    case Group::data: return along(rank, place, tensor, context, parallel_.data);
    case Group::gradient: return along(rank, place, tensor, 1, gradient);
    case Group::expert: return along(rank, place, tensor, 1, parallel_.expert);
    case Group::expert_gradient: return along(rank, place, tensor, parallel_.expert, gradient / parallel_.expert);
    case Group::shard: return along(rank, place, tensor, 1, shard);
    case Group::replica: return along(rank, place, tensor, shard, gradient / shard);
    case Group::pipeline: return along(rank, at.pipeline, tensor * gradient, 1, parallel_.pipeline);
    case Group::embedding: {
      const std::int64_t last = parallel_.pipeline - 1;
      if (last == 0 || (at.pipeline != 0 && at.pipeline != last)) return {rank};
      return along(rank, at.pipeline, tensor * gradient, last, 2);
    }
    case Group::world: return progression(0, 1, world_size());
  }
  throw std::logic_error("unknown group");
}

std::int64_t RankGrid::size(Group group) const {
  return static_cast<std::int64_t>(members(group, 0).size());
}

GroupLayout RankGrid::layout(Group group, std::int64_t devices_per_node) const {
  const auto spread = [&](std::int64_t rank) {
    std::map<std::int64_t, std::int64_t> by_node;
    for (const std::int64_t member : members(group, rank)) ++by_node[member / devices_per_node];
    return by_node;
  };
  const std::map<std::int64_t, std::int64_t> by_node = spread(0);
  GroupLayout layout{size(group), 0, static_cast<std::int64_t>(by_node.size()), 1};
  for (const auto& [node, count] : by_node) layout.ranks_per_node = std::max(layout.ranks_per_node, count);
  if (layout.nodes == 1) return layout;

  std::set<std::int64_t> groups;  // by first member: the groups that leave the node of rank 0
  for (std::int64_t rank = 0; rank < std::min(devices_per_node, world_size()); ++rank)
    if (spread(rank).size() > 1) groups.insert(members(group, rank).front());
  layout.siblings = static_cast<std::int64_t>(groups.size());
  return layout;
}

}  // namespace reckon
