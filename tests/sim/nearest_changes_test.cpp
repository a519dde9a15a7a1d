#include "sim/nearest_changes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/plans.h"

namespace reckon {
namespace {

TEST(NearestChanges, KeepsWhatFitsFastestFirst) {
  Plan plan = llama2_13b_on_64();
  plan.batch.micro_batch = 2;
  plan.batch.global_batch = 32;
  // Pretend that full recomputation fits slowly, ZeRO-1 fits fast, smaller micro-batches break a rule, nothing else
  // fits.
  const auto changes = nearest_changes(plan, [](const Plan& changed) -> std::optional<ChangedPlanResult> {
    if (changed.batch.micro_batch != 2) return std::nullopt;
    if (changed.activations.recompute == Recompute::full) return ChangedPlanResult{true, Bytes(5), Seconds(2.0)};
    if (changed.parallel.zero == 1) return ChangedPlanResult{true, Bytes(7), Seconds(1.0)};
    return ChangedPlanResult{false, Bytes(100), Seconds(0.5)};
  });
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].overrides, std::vector<std::string>{"parallel.zero=1"});
  EXPECT_EQ(changes[1].overrides.front(), "activations.recompute=full");
}

TEST(NearestChanges, ChangesKeepTheNumberOfDevicesAndTheBatch) {
  const Plan plan = llama2_13b_on_64();
  int tried = 0;
  nearest_changes(plan, [&](const Plan& changed) -> std::optional<ChangedPlanResult> {
    ++tried;
    EXPECT_EQ(changed.world_size(), plan.world_size());
    EXPECT_EQ(changed.batch.global_batch, plan.batch.global_batch);
    return std::nullopt;
  });
  EXPECT_GE(tried, 8);
}

// What a change clears is set back to auto in its overrides, so that they reproduce it on any plan.
TEST(NearestChanges, OverridesNameEveryKeyThatIsCleared) {
  Plan plan = llama2_13b_on_64();
  plan.activations.bits_by_stage.assign(static_cast<std::size_t>(plan.parallel.pipeline), 4);
  const auto changes = nearest_changes(plan, [](const Plan&) {
    return std::optional(ChangedPlanResult{true, Bytes(1), Seconds(1.0)});
  });
  int checked = 0;
  for (const FittingChange& change : changes) {
    std::string text;
    for (const std::string& one : change.overrides) text += one + " ";
    const bool stored = text.find("activations.stored=") != std::string::npos;
    const bool pipeline = text.find("parallel.pipeline=") != std::string::npos;
    if (stored || pipeline) {
      EXPECT_NE(text.find("activations.bits_by_stage=auto"), std::string::npos) << text;
      ++checked;
    }
    if (pipeline) {
      EXPECT_NE(text.find("parallel.layers_per_stage=auto"), std::string::npos) << text;
    }
  }
  EXPECT_GE(checked, 2);
}

}  // namespace
}  // namespace reckon
