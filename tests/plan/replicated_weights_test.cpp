#include "plan/replicated_weights.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/small_plans.h"

namespace reckon {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

// LLaMA-3 8B: 32 layers of hidden 4096, 8 KV heads of 128, two norms a layer and one before the head.
TEST(ReplicatedWeights, SequenceParallelismSumsTheNorms) {
  Plan plan = llama3_8b(8192);
  plan.parallel.tensor = 4;
  EXPECT_EQ(sum(replicated_elements(plan, parameter_layout(plan, {}), Split::replicated)), 0);
  plan.parallel.sequence = true;
  EXPECT_EQ(sum(replicated_elements(plan, parameter_layout(plan, {}), Split::replicated)), 65 * 4096);
  EXPECT_EQ(sum(replicated_elements(plan, parameter_layout(plan, {}), Split::kv_rows)), 0);
}

TEST(ReplicatedWeights, FewerKeyValueHeadsThanRanksSumTheirWeights) {
  Plan plan = llama3_8b(8192);
  plan.parallel.tensor = 16;  // every KV head on two ranks
  EXPECT_EQ(key_value_replicas(plan), 2);
  EXPECT_EQ(sum(replicated_elements(plan, parameter_layout(plan, {}), Split::kv_rows)), 32LL * 2 * 128 * 4096);
}

TEST(ReplicatedWeights, ShardsHoldThemOnce) {
  Plan plan = llama3_8b(8192);
  plan.parallel.tensor = 4;
  plan.parallel.sequence = true;
  plan.parallel.data = 3;
  for (const int zero : {1, 2, 3}) {
    plan.parallel.zero = zero;
    const ParameterLayout layout = parameter_layout(plan, {});
    std::int64_t held = 0;
    for (std::int64_t shard = 0; shard < 3; ++shard)
      for (const FlatRange& range : replicated_ranges(plan, layout, Split::replicated, shard)) {
        const FlatRange own = layout.shard_of(layout.units[layout.unit_of(range.first)], shard);
        EXPECT_GE(range.first, own.first);
        EXPECT_LE(range.end(), own.end());
        held += range.count;
      }
    EXPECT_EQ(held, 65 * 4096);
  }
}

}  // namespace
}  // namespace reckon
