// Rank <-> coordinates, and the groups a rank belongs to. The one place that decides the order of dimensions:
// tensor fastest, then ulysses, ring, data, pipeline slowest, so that the chattiest groups sit inside a node.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/collective.h"
#include "plan/plan.h"

namespace reckon {

struct Coordinates {
  std::int64_t tensor = 0, ulysses = 0, ring = 0, data = 0, pipeline = 0;

  bool operator==(const Coordinates&) const = default;
};

/// How a group lies on nodes; the key of collective fits.
struct GroupLayout {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;  // members on the fullest node
  std::int64_t nodes = 1;
  std::int64_t siblings = 1;  // groups of the same kind that use the node's network ports at the same time

  bool operator==(const GroupLayout&) const = default;
};

class RankGrid {
 public:
  /// Throws std::logic_error unless all degrees are positive and expert and zero_group divide data x context.
  explicit RankGrid(const ParallelSpec& parallel);
  /// A grid that knows its nodes, which gradient_inside and gradient_across ask for.
  explicit RankGrid(const Plan& plan);

  std::int64_t world_size() const;
  Coordinates coordinates(std::int64_t rank) const;
  std::int64_t rank(const Coordinates& coordinates) const;
  /// Members of `rank`'s group in group order (the order that collectives and shards use).
  std::vector<std::int64_t> members(Group group, std::int64_t rank) const;
  std::int64_t size(Group group) const;
  /// Layout of the group containing rank 0 on nodes of `devices_per_node`. Siblings are counted on the node of rank 0;
  /// a group inside one node uses no network port and has siblings = 1.
  GroupLayout layout(Group group, std::int64_t devices_per_node) const;
  /// Whether every node that has members of a group has the same number of neighbouring ones.
  bool lies_evenly(Group group, std::int64_t devices_per_node) const;

 private:
  ParallelSpec parallel_;
  std::int64_t devices_per_node_ = 0;  // 0 = not known
};

}  // namespace reckon
