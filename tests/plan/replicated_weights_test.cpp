#include "plan/replicated_weights.h"

#include <gtest/gtest.h>

#include "tests/support/small_plans.h"

namespace reckon {
namespace {

// LLaMA-3 8B: hidden 4096, 8 KV heads of 128, two norms a layer.
TEST(ReplicatedSums, SequenceParallelismSumsTheNormsOfALayer) {
  Plan plan = llama3_8b(8192);
  plan.parallel.tensor = 4;
  EXPECT_TRUE(replicated_sums(plan, Section::dense_layer).empty());
  plan.parallel.sequence = true;
  const auto sums = replicated_sums(plan, Section::dense_layer);
  ASSERT_EQ(sums.size(), 2u);
  for (const ReplicatedSum& sum : sums) {
    EXPECT_EQ(sum.bytes.value, 4 * 4096);
    EXPECT_EQ(sum.ranks, 4);
  }
  EXPECT_TRUE(replicated_sums(plan, Section::embedding).empty());
  EXPECT_EQ(replicated_sums(plan, Section::head).size(), 1u);
}

TEST(ReplicatedSums, FewerKeyValueHeadsThanRanksSumTheirWeights) {
  Plan plan = llama3_8b(8192);
  plan.parallel.tensor = 16;  // every KV head on two ranks
  EXPECT_EQ(key_value_replicas(plan), 2);
  const auto sums = replicated_sums(plan, Section::dense_layer);
  ASSERT_EQ(sums.size(), 2u);  // keys and values
  for (const ReplicatedSum& sum : sums) {
    EXPECT_EQ(sum.bytes.value, 4LL * 128 * 4096);  // one head
    EXPECT_EQ(sum.ranks, 2);
  }
}

}  // namespace
}  // namespace reckon
