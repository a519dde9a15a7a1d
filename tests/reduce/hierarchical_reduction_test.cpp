#include "runtime/train/reduce/hierarchical_reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <random>
#include <string>

#include "plan/errors.h"
#include "runtime/comm/make_communicator.h"
#include "runtime/train/reduce/quantized_reduction.h"
#include "tests/reduce/reduced_gradients.h"

namespace reckon {
namespace {

using testing::gradients_of;
using testing::relative_error;
using testing::round_trip;

constexpr int kBlock = 128;

/// One rank of a sum over nodes of `inside` consecutive ranks.
struct NodeRank {
  std::unique_ptr<Communicator> inside, across;

  NodeRank(Communicator& world, int ranks_inside)
      : inside(world.split(world.rank() / ranks_inside, world.rank(), "inside")),
        across(world.split(world.rank() % ranks_inside, world.rank(), "across")) {}
};

/// The whole reduction on one rank: the sum that it reads, part by part.
std::vector<float> all_reduce(Communicator& world, NodeRank& node, std::int64_t count, Storage wire,
                              const QuantizeOptions& options) {
  std::vector<float> gradients = gradients_of(world.rank(), count);
  const auto parts = block_parts(count, world.size(), kBlock);
  std::vector<float> own(static_cast<std::size_t>(parts[static_cast<std::size_t>(world.rank())]));
  std::vector<float> scratch(static_cast<std::size_t>(*std::max_element(parts.begin(), parts.end())));
  std::vector<std::byte> workspace(
      static_cast<std::size_t>(hierarchical_workspace(wire, parts, node.inside->size()).value));
  HierarchicalReduction reduction(*node.inside, *node.across, wire, parts, workspace);
  reduction.start(gradients, options);
  reduction.send_between(scratch);
  reduction.reduce(own);
  reduction.start_gather(own);
  reduction.gather_inside();
  reduction.finish_gather();
  std::span<float> rest(gradients);
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto elements = static_cast<std::size_t>(parts[static_cast<std::size_t>(rank)]);
    reduction.read_part(rank, rest.first(elements));
    rest = rest.subspan(elements);
  }
  return gradients;
}

std::vector<float> result_of_rank_0(int ranks, int inside, std::int64_t count, Storage wire) {
  std::vector<float> result;
  std::mutex mutex;
  run_ranks("threads", ranks, {Seconds(60.0)}, [&](Communicator& world) {
    NodeRank node(world, inside);
    const std::vector<float> own = all_reduce(world, node, count, wire, {});
    const std::lock_guard lock(mutex);
    if (world.rank() == 0) result = own;
  });
  return result;
}

void add(std::vector<float>& sum, const std::vector<float>& next) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += next[i];
}

/// The definition, written down for one process: each node sums its ranks' rounded gradients in FP32, the rounded sums
/// of the nodes are added in FP32 and rounded. Blocks do not straddle parts, so whole buffers give the same codes.
std::vector<float> by_definition(int ranks, int inside, std::int64_t count, Storage wire) {
  std::vector<float> total;
  for (int node = 0; node < ranks / inside; ++node) {
    std::vector<float> sum = round_trip(gradients_of(node * inside, count), wire);
    for (int place = 1; place < inside; ++place) add(sum, round_trip(gradients_of(node * inside + place, count), wire));
    if (node == 0) total = round_trip(sum, wire);
    else add(total, round_trip(sum, wire));
  }
  return round_trip(total, wire);
}

TEST(HierarchicalReduction, IsTheRoundedSumOfTheRoundedSumsOfNodes) {
  for (const NumberFormat format : {NumberFormat::int8, NumberFormat::fp8_e4m3, NumberFormat::int4})
    for (const auto& [ranks, inside] : {std::pair{4, 2}, {6, 3}, {6, 2}, {3, 1}, {3, 3}})
      for (const std::int64_t count : {1, 129, 5000}) {  // fewer blocks than ranks; a short block; many
        const Storage wire{format, kBlock, ScaleFormat::fp32};
        EXPECT_EQ(result_of_rank_0(ranks, inside, count, wire), by_definition(ranks, inside, count, wire))
            << name_of(format) << ": " << ranks << " ranks, " << inside << " on a node, " << count << " elements";
      }
}

TEST(HierarchicalReduction, GivesAllRanksTheSameBits) {
  const Storage wire{NumberFormat::int8, kBlock, ScaleFormat::bf16};
  run_ranks("threads", 6, {Seconds(60.0)}, [&](Communicator& world) {
    NodeRank node(world, 3);
    const std::vector<float> own = all_reduce(world, node, 3001, wire, {Rounding::stochastic, 3, 0});
    std::vector<float> first = own;
    world.broadcast(view(first), 0).wait();
    EXPECT_EQ(own, first);
  });
}

TEST(HierarchicalReduction, AShardRoundedAloneHasTheBitsOfTheWholeSum) {
  const Storage wire{NumberFormat::int8, kBlock, ScaleFormat::bf16};
  for (const Rounding rounding : {Rounding::nearest_even, Rounding::stochastic})
    run_ranks("threads", 4, {Seconds(60.0)}, [&](Communicator& world) {
      constexpr std::int64_t kCount = 2000;
      NodeRank node(world, 2);
      const QuantizeOptions options{rounding, 11, 500};
      const std::vector<float> whole = all_reduce(world, node, kCount, wire, options);
      const auto parts = block_parts(kCount, world.size(), kBlock);
      const Segment own = segment_of(parts, kCount, world.size(), world.rank());
      std::vector<float> shard(static_cast<std::size_t>(own.count)), scratch(kCount);
      std::vector<std::byte> workspace(static_cast<std::size_t>(hierarchical_workspace(wire, parts, 2).value));
      HierarchicalReduction reduction(*node.inside, *node.across, wire, parts, workspace);
      reduction.start(gradients_of(world.rank(), kCount), options);
      reduction.send_between(scratch);
      reduction.reduce(shard);
      reduction.round_as_gathered(shard);
      EXPECT_TRUE(std::equal(shard.begin(), shard.end(), whole.begin() + own.offset));
    });
}

/// Two ranks are one node and one of two roundings fewer: sqrt(2) roundings against sqrt(3), 1.22 times the error.
TEST(HierarchicalReduction, ErrorDoesNotGrowWithTheRanks) {
  for (const NumberFormat format : {NumberFormat::int8, NumberFormat::fp8_e4m3}) {
    const Storage wire{format, kBlock, ScaleFormat::fp32};
    std::vector<double> errors;
    for (const auto& [ranks, inside] : {std::pair{2, 2}, {4, 2}, {8, 2}, {8, 4}, {16, 4}, {16, 8}}) {
      // A sum inside one node is exchanged flat.
      const std::vector<float> sum = result_of_rank_0(ranks, inside, 20000, wire);
      errors.push_back(relative_error(sum, ranks));
    }
    const auto [least, most] = std::minmax_element(errors.begin() + 1, errors.end());
    EXPECT_LT(*most / *least, 1.05) << name_of(format) << ": " << *least << " to " << *most;
    RecordProperty(std::string(name_of(format)), std::to_string(*least) + " to " + std::to_string(*most));
  }
}

/// Three nodes of two: each way 1/2 of the quantized buffer inside, and 2/3 of its half between nodes, where a flat
/// exchange sends 4/6 of the whole.
TEST(HierarchicalReduction, SendsTheBytesOfTheFormula) {
  const Storage wire{NumberFormat::int8, kBlock, ScaleFormat::bf16};
  constexpr std::int64_t kCount = 6 * 8 * kBlock;
  const double bytes = static_cast<double>(kCount) * (1.0 + 2.0 / kBlock);
  run_ranks("threads", 6, {Seconds(60.0)}, [&](Communicator& world) {
    NodeRank node(world, 2);
    all_reduce(world, node, kCount, wire, {});
    for (const auto& [group, sent] :
         {std::pair{node.inside.get(), bytes / 2}, {node.across.get(), bytes / 2 * 2 / 3}}) {
      const auto traffic = group->traffic();
      ASSERT_EQ(traffic.size(), 2u);  // all-to-all and all-gather
      for (const TrafficCount& entry : traffic) {
        EXPECT_EQ(entry.calls, 1);
        EXPECT_DOUBLE_EQ(entry.bytes_per_rank, sent) << entry.collective;
      }
    }
  });
}

TEST(HierarchicalReduction, EqualPartsTakeTheWorkspaceOfAFlatExchange) {
  const Storage wire{NumberFormat::int8, kBlock, ScaleFormat::bf16};
  const std::vector<std::int64_t> parts(8, 300);
  EXPECT_EQ(hierarchical_workspace(wire, parts, 4), reduction_workspace(wire, parts));
}

TEST(HierarchicalReduction, RefusesFormatsWithoutBlocks) {
  run_ranks("threads", 1, {Seconds(60.0)}, [&](Communicator& world) {
    NodeRank node(world, 1);
    std::vector<std::byte> workspace(100);
    EXPECT_THROW(HierarchicalReduction(*node.inside, *node.across, Storage{NumberFormat::bf16}, {5}, workspace),
                 ConfigError);
  });
}

}  // namespace
}  // namespace reckon
