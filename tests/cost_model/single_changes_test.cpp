#include "cost_model/single_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/load_plan.h"
#include "plan/lossy_change.h"

namespace reckon {
namespace {

const ConfigPaths kPaths{std::string(RECKON_SOURCE_DIR) + "/configs", {}};

Plan plan_with(const std::vector<std::string>& overrides) {
  return load_plan(kPaths.configs / "plans/llama2-70b-128xa100.yaml", overrides, kPaths);
}

std::string joined(const std::vector<std::string>& overrides) {
  std::string text;
  for (const std::string& one : overrides) text += one + " ";
  return text;
}

TEST(SingleChanges, KeepTheNumberOfDevicesAndTheBatchAndAreOverrides) {
  const Plan plan = plan_with({"batch.micro_batch=4"});
  std::set<std::string> seen;
  for (const std::vector<std::string>& overrides : single_changes(plan)) {
    std::vector<std::string> all = {"batch.micro_batch=4"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    const Plan changed = plan_with(all);
    EXPECT_EQ(changed.world_size(), plan.world_size()) << joined(overrides);
    EXPECT_EQ(changed.batch.global_batch, plan.batch.global_batch) << joined(overrides);
    EXPECT_NE(write_plan(changed), write_plan(plan)) << joined(overrides);
    EXPECT_TRUE(seen.insert(joined(overrides)).second) << joined(overrides);
  }
  EXPECT_TRUE(seen.contains("batch.micro_batch=1 "));
  EXPECT_TRUE(seen.contains("batch.micro_batch=2 "));
  EXPECT_TRUE(seen.contains("batch.micro_batch=8 "));
  EXPECT_GE(seen.size(), 12u);
}

/// What must follow a change is set back to auto in its overrides, so that they give the same plan again.
TEST(SingleChanges, NameEveryKeyThatMustFollow) {
  int checked = 0;
  for (const std::vector<std::string>& overrides : single_changes(plan_with({}))) {
    const std::string text = joined(overrides);
    const bool pipeline = text.find("parallel.pipeline=") != std::string::npos;
    if (!pipeline && text.find("activations.stored=") == std::string::npos) continue;
    EXPECT_NE(text.find("activations.bits_by_stage=auto"), std::string::npos) << text;
    if (pipeline) {
      EXPECT_NE(text.find("parallel.layers_per_stage=auto"), std::string::npos) << text;
    }
    ++checked;
  }
  EXPECT_GE(checked, 3);
}

TEST(FittingChanges, AreFastestFirstAndThoseThatChangeGradientsLast) {
  const std::vector<PlanChange> changes = fitting_changes(plan_with({}));
  ASSERT_GE(changes.size(), 4u);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EXPECT_TRUE(changes[i].fits);
    if (i == 0) continue;
    const bool before = changes_gradients(joined(changes[i - 1].overrides)),
               after = changes_gradients(joined(changes[i].overrides));
    EXPECT_LE(before, after);
    if (before == after) {
      EXPECT_LE(changes[i - 1].step, changes[i].step);
    }
  }
  EXPECT_TRUE(changes_gradients(joined(changes.back().overrides)));
  EXPECT_EQ(nearest_fitting_change(plan_with({})) + " ", joined(changes.front().overrides));
}

TEST(FittingChanges, ThereAreNoneWhereNothingFits) {
  EXPECT_TRUE(fitting_changes(plan_with({"memory.limit=1GiB"})).empty());
  EXPECT_EQ(nearest_fitting_change(plan_with({"memory.limit=1GiB"})), "");
}

}  // namespace
}  // namespace reckon
