#include "runtime/train/reduce/quantized_reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <random>

#include "plan/errors.h"
#include "runtime/comm/make_communicator.h"
#include "tests/reduce/reduced_gradients.h"

namespace reckon {
namespace {

using testing::gradients_of;
using testing::relative_error;
using testing::round_trip;

constexpr std::int64_t kBlock = 128;

std::vector<std::byte> workspace_of(Storage wire, const std::vector<std::int64_t>& parts) {
  return std::vector<std::byte>(static_cast<std::size_t>(reduction_workspace(wire, parts).value));
}

/// Parts of the sum one after the other.
void read_all(const QuantizedReduction& reduction, const std::vector<std::int64_t>& parts, std::span<float> values) {
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const auto count = static_cast<std::size_t>(parts[rank]);
    reduction.read_part(static_cast<int>(rank), values.first(count));
    values = values.subspan(count);
  }
}

/// The whole reduction on one rank.
std::vector<float> all_reduce(Communicator& world, std::int64_t count, Storage wire, const QuantizeOptions& options) {
  std::vector<float> gradients = gradients_of(world.rank(), count);
  const auto parts = block_parts(count, world.size(), static_cast<int>(kBlock));
  std::vector<float> own(static_cast<std::size_t>(parts[static_cast<std::size_t>(world.rank())]));
  std::vector<std::byte> workspace = workspace_of(wire, parts);
  QuantizedReduction reduction(world, wire, parts, workspace);
  reduction.start(gradients, options);
  reduction.reduce(own);
  reduction.start_gather(own);
  reduction.finish_gather();
  read_all(reduction, parts, gradients);
  return gradients;
}

std::vector<float> result_of_rank_0(int ranks, std::int64_t count, Storage wire, const QuantizeOptions& options = {}) {
  std::vector<float> result;
  std::mutex mutex;
  run_ranks("threads", ranks, {Seconds(60.0)}, [&](Communicator& world) {
    const auto own = all_reduce(world, count, wire, options);
    const std::lock_guard lock(mutex);
    if (world.rank() == 0) result = own;
  });
  return result;
}

TEST(BlockParts, AreWholeBlocksAndCoverTheBuffer) {
  EXPECT_EQ(block_parts(1000, 3, 128), (std::vector<std::int64_t>{384, 384, 232}));  // 8 blocks: 3, 3, 2
  EXPECT_EQ(block_parts(100, 3, 128), (std::vector<std::int64_t>{100, 0, 0}));
  EXPECT_EQ(block_parts(0, 2, 128), (std::vector<std::int64_t>{0, 0}));
}

/// The definition, written down for one process: quantize each rank's gradients, add in FP32 and rank order, quantize
/// the sum. Blocks do not straddle parts, so quantizing whole buffers gives the same codes.
TEST(QuantizedReduction, IsTheRoundedSumOfTheRoundedGradients) {
  for (const NumberFormat format : {NumberFormat::int8, NumberFormat::fp8_e4m3, NumberFormat::int4})
    for (const int ranks : {1, 2, 3, 8})
      for (const std::int64_t count : {1, 129, 5000}) {
        const Storage wire{format, static_cast<int>(kBlock), ScaleFormat::fp32};
        std::vector<float> expected = round_trip(gradients_of(0, count), wire);
        for (int rank = 1; rank < ranks; ++rank) {
          const std::vector<float> next = round_trip(gradients_of(rank, count), wire);
          for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += next[i];
        }
        EXPECT_EQ(result_of_rank_0(ranks, count, wire), round_trip(expected, wire))
            << name_of(format) << " over " << ranks << " ranks, " << count << " elements";
      }
}

TEST(QuantizedReduction, GivesAllRanksTheSameBits) {
  const Storage wire{NumberFormat::int8, static_cast<int>(kBlock), ScaleFormat::bf16};
  run_ranks("threads", 5, {Seconds(60.0)}, [&](Communicator& world) {
    const std::vector<float> own = all_reduce(world, 3001, wire, {Rounding::stochastic, 3, 0});
    std::vector<float> first = own;
    world.broadcast(view(first), 0).wait();
    EXPECT_EQ(own, first);
  });
}

/// Independent gradients: the error of each of the two roundings grows like the sum itself, so their ratio stays.
TEST(QuantizedReduction, ErrorDoesNotGrowWithTheRanks) {
  for (const NumberFormat format : {NumberFormat::int8, NumberFormat::fp8_e4m3}) {
    std::vector<double> errors;
    for (const int ranks : {2, 4, 8, 16})
      errors.push_back(
          relative_error(result_of_rank_0(ranks, 20000, {format, static_cast<int>(kBlock), ScaleFormat::fp32}), ranks));
    const auto [least, most] = std::minmax_element(errors.begin(), errors.end());
    EXPECT_LT(*most / *least, 1.3) << name_of(format) << ": " << *least << " to " << *most;
    RecordProperty(std::string(name_of(format)), std::to_string(*least) + " to " + std::to_string(*most));
  }
}

/// Per rank (n-1)/n of the quantized buffer in the all-to-all and again in the all-gather.
TEST(QuantizedReduction, SendsTheBytesOfTheFormula) {
  const Storage wire{NumberFormat::int8, static_cast<int>(kBlock), ScaleFormat::bf16};
  constexpr int kRanks = 4;
  constexpr std::int64_t kCount = kRanks * 8 * kBlock;
  const double one_way = static_cast<double>(kCount) * (1.0 + 2.0 / kBlock) * (kRanks - 1) / kRanks;
  run_ranks("threads", kRanks, {Seconds(60.0)}, [&](Communicator& world) {
    all_reduce(world, kCount, wire, {});
    const auto traffic = world.traffic();
    ASSERT_EQ(traffic.size(), 2u);
    for (const TrafficCount& entry : traffic) {
      EXPECT_EQ(entry.calls, 1);
      EXPECT_EQ(entry.dtype, "uint8");
      EXPECT_DOUBLE_EQ(entry.bytes_per_rank, one_way) << entry.collective;
    }
  });
}

TEST(QuantizedReduction, AShardRoundedAloneHasTheBitsOfTheWholeSum) {
  const Storage wire{NumberFormat::int8, static_cast<int>(kBlock), ScaleFormat::bf16};
  for (const Rounding rounding : {Rounding::nearest_even, Rounding::stochastic})
    run_ranks("threads", 3, {Seconds(60.0)}, [&](Communicator& world) {
      constexpr std::int64_t kCount = 2000;
      const QuantizeOptions options{rounding, 11, 500};
      const std::vector<float> whole = all_reduce(world, kCount, wire, options);
      const auto parts = block_parts(kCount, world.size(), static_cast<int>(kBlock));
      const Segment own = segment_of(parts, kCount, world.size(), world.rank());
      std::vector<float> shard(static_cast<std::size_t>(own.count));
      std::vector<std::byte> workspace = workspace_of(wire, parts);
      QuantizedReduction reduction(world, wire, parts, workspace);
      reduction.start(gradients_of(world.rank(), kCount), options);
      reduction.reduce(shard);
      reduction.round_as_gathered(shard);
      EXPECT_TRUE(std::equal(shard.begin(), shard.end(), whole.begin() + own.offset));
    });
}

TEST(QuantizedReduction, ReductionsOfSeveralBucketsMayOverlap) {
  const Storage wire{NumberFormat::fp8_e5m2, static_cast<int>(kBlock), ScaleFormat::fp32};
  run_ranks("threads", 4, {Seconds(60.0)}, [&](Communicator& world) {
    constexpr std::int64_t kCount = 30000;
    const std::vector<float> expected = all_reduce(world, kCount, wire, {});
    const auto parts = block_parts(kCount, world.size(), static_cast<int>(kBlock));
    std::vector<QuantizedReduction> buckets;
    std::vector<std::vector<float>> own(
        3, std::vector<float>(static_cast<std::size_t>(parts[static_cast<std::size_t>(world.rank())])));
    std::vector<std::vector<std::byte>> workspaces(3, workspace_of(wire, parts));
    for (std::vector<std::byte>& workspace : workspaces) buckets.emplace_back(world, wire, parts, workspace);
    for (QuantizedReduction& bucket : buckets) bucket.start(gradients_of(world.rank(), kCount), {});
    for (std::size_t bucket = 0; bucket < 3; ++bucket) {
      buckets[bucket].reduce(own[bucket]);
      buckets[bucket].start_gather(own[bucket]);
    }
    for (QuantizedReduction& bucket : buckets) {
      std::vector<float> gradients(static_cast<std::size_t>(kCount));
      bucket.finish_gather();
      read_all(bucket, parts, gradients);
      EXPECT_EQ(gradients, expected);
    }
  });
}

TEST(QuantizedReduction, RefusesFormatsWithoutBlocks) {
  run_ranks("threads", 1, {Seconds(60.0)}, [&](Communicator& world) {
    std::vector<std::byte> workspace(100);
    EXPECT_THROW(QuantizedReduction(world, Storage{NumberFormat::bf16}, {5}, workspace), ConfigError);
  });
}

}  // namespace
}  // namespace reckon
