#include "plan/changed_keys.h"

#include <gtest/gtest.h>

#include "plan/load_plan.h"

namespace reckon {
namespace {

Plan plan_with(const std::vector<std::string>& overrides) {
  const ConfigPaths paths{std::string(RECKON_SOURCE_DIR) + "/configs", {}};
  return load_plan(paths.configs / "plans/llama3.1-8b-h100-node.yaml", overrides, paths);
}

TEST(ChangedKeys, EqualPlansDifferInNone) {
  EXPECT_TRUE(changed_keys(plan_with({}), plan_with({})).empty());
}

TEST(ChangedKeys, LongValuesThatDifferAtTheirEndDiffer) {
  const std::string start = "train.data=/" + std::string(100, 'x');
  const auto changed = changed_keys(plan_with({start + "/a.tokens"}), plan_with({start + "/b.tokens"}));
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].key, "train.data");
  EXPECT_TRUE(changed[0].first.ends_with("/a.tokens"));
  EXPECT_TRUE(changed[0].second.ends_with("/b.tokens"));
}

TEST(ChangedKeys, OfOneModelAndOneClusterThePartsAreNamed) {
  const auto changed =
      changed_keys(plan_with({}), plan_with({"model.layers=16", "hardware.inter_node.bandwidth=1 GB/s"}));
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(changed[0].key, "model.layers");
  EXPECT_EQ(changed[0].first, "32");
  EXPECT_EQ(changed[0].second, "16");
  EXPECT_EQ(key_of(changed[0]).path, "model");
  EXPECT_EQ(changed[1].key, "hardware.inter_node.bandwidth");
  EXPECT_EQ(changed[1].second, "1 GB/s");
  EXPECT_EQ(key_of(changed[1]).path, "hardware");
}

TEST(ChangedKeys, WhatOneModelLeavesOutIsItsDefault) {
  const auto changed = changed_keys(plan_with({}), plan_with({"model.sliding_window=128"}));
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].key, "model.sliding_window");
  EXPECT_EQ(changed[0].first, "default");
  EXPECT_EQ(changed[0].second, "128");
}

TEST(ChangedKeys, AnotherModelIsOneRow) {
  const auto changed = changed_keys(plan_with({}), plan_with({"model=llama2-7b"}));
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].key, "model");
  EXPECT_EQ(changed[0].second, "llama2-7b");
}

}  // namespace
}  // namespace reckon
