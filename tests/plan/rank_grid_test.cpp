#include "plan/rank_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

namespace reckon {
namespace {

using Ranks = std::vector<std::int64_t>;

ParallelSpec degrees(std::int64_t tensor, std::int64_t ulysses, std::int64_t ring, std::int64_t data,
                     std::int64_t pipeline) {
  ParallelSpec parallel;
  parallel.tensor = tensor;
  parallel.ulysses = ulysses;
  parallel.ring = ring;
  parallel.data = data;
  parallel.pipeline = pipeline;
  return parallel;
}

const std::vector<Group> kEveryGroup = {Group::tensor, Group::ulysses,  Group::ring,     Group::expert,
                                        Group::data,   Group::gradient, Group::shard,    Group::expert_gradient,
                                        Group::world,  Group::replica,  Group::pipeline, Group::embedding};

TEST(RankGrid, TensorIsFastestAndPipelineSlowest) {
  const RankGrid grid(degrees(2, 3, 5, 7, 11));
  EXPECT_EQ(grid.world_size(), 2 * 3 * 5 * 7 * 11);
  EXPECT_EQ(grid.rank({1, 0, 0, 0, 0}), 1);
  EXPECT_EQ(grid.rank({0, 1, 0, 0, 0}), 2);
  EXPECT_EQ(grid.rank({0, 0, 1, 0, 0}), 2 * 3);
  EXPECT_EQ(grid.rank({0, 0, 0, 1, 0}), 2 * 3 * 5);
  EXPECT_EQ(grid.rank({0, 0, 0, 0, 1}), 2 * 3 * 5 * 7);
}

TEST(RankGrid, CoordinatesInvertRank) {
  const RankGrid grid(degrees(2, 3, 2, 2, 3));
  for (std::int64_t rank = 0; rank < grid.world_size(); ++rank) EXPECT_EQ(grid.rank(grid.coordinates(rank)), rank);
}

TEST(RankGrid, EveryRankIsInExactlyOneGroupOfEachKind) {
  std::vector<ParallelSpec> plans = {degrees(1, 1, 1, 1, 1), degrees(3, 1, 1, 1, 1), degrees(2, 2, 3, 4, 5),
                                     degrees(1, 1, 2, 3, 2), degrees(4, 1, 1, 2, 1)};
  plans[2].expert = 6;
  plans[2].zero = 1;
  plans[2].zero_group = 4;
  plans[3].expert = 3;
  plans[3].zero = 2;
  for (const ParallelSpec& parallel : plans) {
    const RankGrid grid(parallel);
    for (const Group group : kEveryGroup) {
      Ranks seen;
      for (std::int64_t rank = 0; rank < grid.world_size(); ++rank) {
        const Ranks members = grid.members(group, rank);
        ASSERT_EQ(std::count(members.begin(), members.end(), rank), 1);
        for (const std::int64_t member : members) ASSERT_EQ(grid.members(group, member), members);
        if (members.front() == rank) seen.insert(seen.end(), members.begin(), members.end());
      }
      std::sort(seen.begin(), seen.end());
      ASSERT_EQ(seen, grid.members(Group::world, 0));
    }
  }
}

TEST(RankGrid, GroupsOfASmallWorldByHand) {
  // tensor 2, ulysses 2, ring 2, data 2, pipeline 2: rank = t + 2u + 4r + 8d + 16p
  ParallelSpec parallel = degrees(2, 2, 2, 2, 2);
  parallel.expert = 4;
  parallel.zero = 1;
  parallel.zero_group = 2;
  const RankGrid grid(parallel);
  EXPECT_EQ(grid.members(Group::tensor, 5), (Ranks{4, 5}));
  EXPECT_EQ(grid.members(Group::ulysses, 5), (Ranks{5, 7}));
  EXPECT_EQ(grid.members(Group::ring, 5), (Ranks{1, 5}));
  EXPECT_EQ(grid.members(Group::data, 5), (Ranks{5, 13}));
  EXPECT_EQ(grid.members(Group::gradient, 5), (Ranks{1, 3, 5, 7, 9, 11, 13, 15}));
  EXPECT_EQ(grid.members(Group::expert, 5), (Ranks{1, 3, 5, 7}));
  EXPECT_EQ(grid.members(Group::expert_gradient, 5), (Ranks{5, 13}));
  EXPECT_EQ(grid.members(Group::shard, 5), (Ranks{5, 7}));
  EXPECT_EQ(grid.members(Group::replica, 5), (Ranks{1, 5, 9, 13}));
  EXPECT_EQ(grid.members(Group::pipeline, 21), (Ranks{5, 21}));
}

TEST(RankGrid, WithoutZeroEveryRankIsItsOwnShard) {
  const RankGrid grid(degrees(1, 2, 1, 2, 1));
  EXPECT_EQ(grid.members(Group::shard, 3), (Ranks{3}));
  EXPECT_EQ(grid.members(Group::replica, 3), (Ranks{0, 1, 2, 3}));
}

TEST(RankGrid, EmbeddingGroupJoinsFirstAndLastStageOnly) {
  const RankGrid grid(degrees(2, 1, 1, 1, 3));
  EXPECT_EQ(grid.members(Group::embedding, 1), (Ranks{1, 5}));
  EXPECT_EQ(grid.members(Group::embedding, 5), (Ranks{1, 5}));
  EXPECT_EQ(grid.members(Group::embedding, 3), (Ranks{3}));
  EXPECT_EQ(RankGrid(degrees(2, 1, 1, 1, 1)).members(Group::embedding, 1), (Ranks{1}));
}

TEST(RankGrid, LayoutCountsNodesAndTheGroupsThatShareTheNetwork) {
  const RankGrid grid(degrees(8, 1, 1, 2, 4));  // 64 ranks on 8 nodes of 8
  EXPECT_EQ(grid.layout(Group::tensor, 8), (GroupLayout{8, 8, 1, 1}));
  EXPECT_EQ(grid.layout(Group::data, 8), (GroupLayout{2, 1, 2, 8}));      // one of eight strided groups
  EXPECT_EQ(grid.layout(Group::pipeline, 8), (GroupLayout{4, 1, 4, 8}));  // stages are two nodes apart
  EXPECT_EQ(grid.layout(Group::world, 8), (GroupLayout{64, 8, 8, 1}));
}

TEST(RankGrid, LayoutOfAGroupThatDoesNotFillNodesEvenly) {
  // 6 tensor ranks on nodes of 4: ranks 0..3 and 4, 5. The group of ranks 6..11 does not touch node 0.
  EXPECT_EQ(RankGrid(degrees(6, 1, 1, 2, 1)).layout(Group::tensor, 4), (GroupLayout{6, 4, 2, 1}));
}

TEST(RankGrid, RefusesDegreesThatDoNotDivide) {
  ParallelSpec parallel = degrees(1, 1, 1, 4, 1);
  parallel.expert = 3;
  EXPECT_THROW(RankGrid{parallel}, std::logic_error);
  EXPECT_THROW(RankGrid{degrees(0, 1, 1, 1, 1)}, std::logic_error);
  EXPECT_THROW(RankGrid(degrees(1, 1, 1, 4, 1)).coordinates(4), std::out_of_range);
}

Plan on_nodes(const ParallelSpec& parallel, int devices_per_node) {
  Plan plan;
  plan.parallel = parallel;
  plan.hardware.devices_per_node = devices_per_node;
  return plan;
}

// Tensor 2, data 4, pipeline 2: sums over ranks 0 2 4 6, 1 3 5 7, 8 10 12 14, 9 11 13 15. Nodes of 4 hold two of each.
TEST(RankGrid, SumsAreCutAtNodeBorders) {
  const RankGrid grid(on_nodes(degrees(2, 1, 1, 4, 2), 4));
  EXPECT_EQ(grid.members(Group::gradient_inside, 0), (Ranks{0, 2}));
  EXPECT_EQ(grid.members(Group::gradient_inside, 7), (Ranks{5, 7}));
  EXPECT_EQ(grid.members(Group::gradient_across, 2), (Ranks{2, 6}));
  EXPECT_EQ(grid.members(Group::gradient_across, 13), (Ranks{9, 13}));
  EXPECT_EQ(grid.layout(Group::gradient_inside, 4).nodes, 1);
  EXPECT_EQ(grid.layout(Group::gradient_across, 4).nodes, 2);
  EXPECT_THROW(RankGrid(degrees(2, 1, 1, 4, 2)).size(Group::gradient_inside), std::logic_error);
}

TEST(RankGrid, SumsInsideOneNodeOrOnNodesOfTheirOwnHaveOneLevel) {
  const RankGrid one_node(on_nodes(degrees(2, 1, 1, 4, 2), 8)), own_nodes(on_nodes(degrees(2, 1, 1, 4, 2), 2));
  EXPECT_EQ(one_node.members(Group::gradient_inside, 9), (Ranks{9, 11, 13, 15}));
  EXPECT_EQ(one_node.size(Group::gradient_across), 1);
  EXPECT_EQ(own_nodes.size(Group::gradient_inside), 1);
  EXPECT_EQ(own_nodes.members(Group::gradient_across, 9), (Ranks{9, 11, 13, 15}));
}

// ZeRO groups of 2 of the 4 replicas: 0 2 | 4 6, inside nodes of 4.
TEST(RankGrid, WithZeroTheShardsAreWhatIsCut) {
  ParallelSpec parallel = degrees(2, 1, 1, 4, 1);
  parallel.zero = 2;
  parallel.zero_group = 2;
  EXPECT_EQ(RankGrid(on_nodes(parallel, 4)).members(Group::gradient_inside, 4), (Ranks{4, 6}));
  EXPECT_EQ(RankGrid(on_nodes(parallel, 4)).size(Group::gradient_across), 1);
}

/// By listing every member's node.
bool lies_evenly_by_listing(const RankGrid& grid, Group group, std::int64_t devices_per_node) {
  std::set<std::size_t> counts;
  for (std::int64_t rank = 0; rank < grid.world_size(); ++rank) {
    std::map<std::int64_t, std::size_t> on_node;
    for (const std::int64_t member : grid.members(group, rank)) ++on_node[member / devices_per_node];
    for (const auto& [node, count] : on_node) counts.insert(count);
  }
  return counts.size() == 1;
}

TEST(RankGrid, LiesEvenlyIsWhatAListOfNodesSays) {
  for (const std::int64_t tensor : {1, 2, 3, 4})
    for (const std::int64_t data : {1, 2, 3, 4, 6, 8})
      for (const std::int64_t pipeline : {1, 2, 3})
        for (const std::int64_t devices : {1, 2, 3, 4, 6, 8, 16}) {
          const RankGrid grid(degrees(tensor, 1, 1, data, pipeline));
          EXPECT_EQ(grid.lies_evenly(Group::gradient, devices), lies_evenly_by_listing(grid, Group::gradient, devices))
              << tensor << " x " << data << " x " << pipeline << " on nodes of " << devices;
        }
}

}  // namespace
}  // namespace reckon
