#include "cost_model/plan_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cost_model/predict.h"
#include "cost_model/smallest_plan.h"
#include "plan/load_plan.h"
#include "tests/support/small_plans.h"

namespace reckon {
namespace {

const ConfigPaths kPaths{std::string(RECKON_SOURCE_DIR) + "/configs", {}};

Plan llama_on_h100(const std::vector<std::string>& overrides) {
  return load_plan(kPaths.configs / "plans/llama3.1-8b-h100-node.yaml", overrides, kPaths);
}

std::vector<SizeMatch> matches(const Plan& plan, const char* text) {
  return tensors_of_size(plan_tensors(resolve(plan)), read_out_of_memory_line(text));
}

bool names(const std::vector<SizeMatch>& found, const std::string& name, const std::string& form) {
  return std::any_of(found.begin(), found.end(), [&](const SizeMatch& match) {
    return match.error == 0 && match.tensor.name.find(name) != std::string::npos &&
           match.tensor.form.find(form) != std::string::npos;
  });
}

TEST(PlanTensors, LogitsInFp32AreFound) {
  const Plan plan = llama_on_h100({"batch.sequence_length=8192", "batch.micro_batch=1"});
  // 8192 x 128256 x 4 bytes = 4,202,692,608 = 3.914 GiB, undivided; the plan's tensor degree divides it.
  const std::int64_t tensor = plan.parallel.tensor;
  EXPECT_TRUE(names(matches(plan, "3.91 GiB"), "logits", "FP32 copy")) << tensor;
  EXPECT_EQ(matches(plan, "3.91 GiB").front().error, 0);
}

TEST(PlanTensors, WeightsWholeAndDivided) {
  const Plan plan = llama_on_h100({"parallel.data=4", "parallel.tensor=2", "parallel.zero=1"});
  // gate_proj: 14336 x 4096 x 2 bytes = 112 MiB whole, 56 MiB on each of two ranks; in FP32 224 and 112 MiB
  EXPECT_TRUE(names(matches(plan, "56.00 MiB"), "gate_proj", "bf16"));
  EXPECT_TRUE(names(matches(plan, "112.00 MiB"), "gate_proj", "FP32"));
  EXPECT_TRUE(names(matches(plan, "224.00 MiB"), "gate_proj", "FP32"));
}

TEST(PlanTensors, ShardsOfTheOptimizer) {
  const Plan plan =
      llama_on_h100({"parallel.data=8", "parallel.tensor=1", "parallel.sequence=false", "parallel.zero=1"});
  // 8,030,261,248 weights / 8 x 4 bytes = 3.7395 GiB
  EXPECT_TRUE(names(matches(plan, "3.74 GiB"), "one shard of 8", "FP32"));
}

TEST(PlanTensors, SizesRoundedByTheAllocatorComeAfterExactOnes) {
  std::vector<SizedTensor> tensors = {{"odd", "", "", Bytes((21 << 20) + 512), false},
                                      {"even", "", "", Bytes(22 << 20), false}};
  const auto found = tensors_of_size(tensors, read_out_of_memory_line("22.00 MiB"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].tensor.name, "even");
  EXPECT_TRUE(found[1].rounded);  // above 10 MiB a segment is a multiple of 2 MiB
}

TEST(PlanTensors, WhereNothingHasTheSizeTheClosestAreNamed) {
  const auto found = tensors_of_size({{"a", "", "", Bytes(1 << 20), false}, {"b", "", "", Bytes(1 << 24), false}},
                                     read_out_of_memory_line("3 MiB"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].tensor.name, "a");  // a third of it; b is more than five times it
  EXPECT_NEAR(found[0].error, -2.0 / 3.0, 1e-12);
}

TEST(SmallestPlan, FitsAndHalfOfItsDevicesDoNot) {
  const Plan plan = llama_on_h100({});
  const auto smallest = smallest_plan(plan, 64);
  ASSERT_TRUE(smallest);
  EXPECT_TRUE(smallest->change.fits);
  // 8.03e9 weights need 18 bytes each in one process (2 + 4 + 12): 134.6 GiB are more than one device of 80 GB holds.
  EXPECT_GE(smallest->devices, 2);
  const Plan found = llama_on_h100(smallest->change.overrides);
  EXPECT_EQ(found.world_size(), smallest->devices);
  EXPECT_TRUE(predict(resolve(found)).verdict.fits);
  EXPECT_FALSE(smallest_plan(plan, smallest->devices / 2)) << "a smaller number of devices would have been found first";
}

TEST(SmallestPlan, NothingWhenTheMemoryOfAllDevicesIsTooSmall) {
  EXPECT_FALSE(smallest_plan(llama_on_h100({"memory.limit=1GiB"}), 16));
}

}  // namespace
}  // namespace reckon
