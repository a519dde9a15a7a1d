#include "report/compare_profiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/errors.h"
#include "report/write_console.h"

namespace reckon {
namespace {

/// Two components of 0.6 and 0.4 s, one stage of 600 + 400 bytes.
StepProfile predicted() {
  StepProfile profile;
  profile.parameters = 1000;
  profile.step.tokens = 512;
  profile.step.seconds = Seconds(1.0);
  profile.step.tokens_per_second_per_device = 512;
  profile.step.mfu = 0.5;
  profile.time = {{"forward.qkv", Seconds(0.7), Seconds(0.6), {}}, {"optimizer", Seconds(0.4), Seconds(0.4), {}}};
  StageProfile stage;
  stage.memory.parameters = Bytes(600);
  stage.memory.activations = Bytes(400);
  stage.memory.peak_allocated = Bytes(1000);
  profile.stages = {stage};
  profile.traffic = {{"gradient", "all_reduce", "fp32", 2, 4000}};
  return profile;
}

/// The same run, measured: 0.5 + 0.5 + 0.25 s (an op that was not predicted), 600 + 200 bytes.
StepProfile measured() {
  StepProfile profile = predicted();
  profile.source = ProfileSource::measured;
  profile.step.seconds = Seconds(1.25);
  profile.time = {{"forward.qkv", Seconds(0.5), Seconds(0.5), Seconds(0.01)},
                  {"optimizer", Seconds(0.5), Seconds(0.5), {}},
                  {"waiting", Seconds(0.25), Seconds(0.25), {}}};
  profile.stages[0].memory.activations = Bytes(200);
  profile.stages[0].memory.peak_allocated = Bytes(800);
  return profile;
}

const ComparisonRow& row(const ProfileComparison& comparison, const std::string& quantity) {
  const auto found = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                                  [&](const ComparisonRow& candidate) { return candidate.quantity == quantity; });
  EXPECT_NE(found, comparison.rows.end()) << quantity;
  return *found;
}

TEST(CompareProfiles, ErrorIsRelativeToTheMeasurement) {
  const ProfileComparison comparison = compare_profiles(predicted(), std::nullopt, measured());
  EXPECT_DOUBLE_EQ(*row(comparison, "step.seconds").error, (1.0 - 1.25) / 1.25);
  EXPECT_DOUBLE_EQ(*row(comparison, "time.forward.qkv").error, (0.6 - 0.5) / 0.5);
  EXPECT_DOUBLE_EQ(*row(comparison, "memory.stage0.activations").error, 1.0);
  EXPECT_EQ(*row(comparison, "memory.stage0.parameters").error, 0.0);
  EXPECT_EQ(*row(comparison, "traffic.gradient.all_reduce.fp32.bytes_per_rank").error, 0.0);
  EXPECT_DOUBLE_EQ(*row(comparison, "time.forward.qkv").spread, 0.01);
}

TEST(CompareProfiles, AComponentOfOneSideIsShownWithoutError) {
  const ProfileComparison comparison = compare_profiles(predicted(), std::nullopt, measured());
  const ComparisonRow& waiting = row(comparison, "time.waiting");
  EXPECT_FALSE(waiting.predicted);
  EXPECT_DOUBLE_EQ(*waiting.measured, 0.25);
  EXPECT_FALSE(waiting.error);
  EXPECT_NE(comparison_text(comparison, {}).find("one side only"), std::string::npos);
}

TEST(CompareProfiles, BlamesSumToTheErrorOfTheirTotal) {
  const ProfileComparison comparison = compare_profiles(predicted(), std::nullopt, measured());
  double time = 0, memory = 0;
  for (const ComparisonRow& part : comparison.rows) {
    if (part.aspect == Aspect::time) time += part.blame.value();
    if (part.aspect == Aspect::memory) memory += part.blame.value();
  }
  EXPECT_NEAR(time, *row(comparison, "step.seconds").error, 1e-12);  // three roundings of numbers below 1
  EXPECT_NEAR(memory, *row(comparison, "memory.stage0.peak_allocated").error, 1e-12);
}

TEST(CompareProfiles, NamesTheComponentToBlame) {
  const ProfileComparison comparison = compare_profiles(predicted(), std::nullopt, measured());
  const auto worst = [&](Aspect aspect) {
    return std::find_if(comparison.worst.begin(), comparison.worst.end(),
                        [&](const WorstRow& candidate) { return candidate.aspect == aspect; })
        ->quantity;
  };
  EXPECT_EQ(worst(Aspect::time), "time.waiting");  // -0.25 of 1.25 s; qkv +0.1, optimizer -0.1
  EXPECT_EQ(worst(Aspect::memory), "memory.stage0.activations");
}

TEST(CompareProfiles, EntriesOfOneNameAddUp) {
  StepProfile twice = predicted();
  twice.traffic.push_back(twice.traffic[0]);
  const ProfileComparison comparison = compare_profiles(twice, std::nullopt, measured());
  EXPECT_EQ(*row(comparison, "traffic.gradient.all_reduce.fp32.bytes_per_rank").predicted, 8000);
}

TEST(CompareProfiles, TheSimulationStandsBesideTheOthers) {
  StepProfile simulated = predicted();
  simulated.source = ProfileSource::simulated;
  simulated.step.seconds = Seconds(1.1);
  const ProfileComparison comparison = compare_profiles(predicted(), simulated, measured());
  EXPECT_DOUBLE_EQ(*row(comparison, "step.seconds").simulated, 1.1);
  EXPECT_EQ(comparison.columns, (std::vector<std::string>{"predicted", "simulated", "measured"}));
}

TEST(CompareProfiles, RefusesProfilesOfDifferentWork) {
  StepProfile other = measured();
  other.parameters = 999;
  EXPECT_THROW(compare_profiles(predicted(), std::nullopt, other), ConfigError);
  other = measured();
  other.step.tokens = 1;
  EXPECT_THROW(compare_profiles(predicted(), std::nullopt, other), ConfigError);
}

TEST(RowsBeyond, WithoutANameJudgesStepTimeAndPeakMemory) {
  const ProfileComparison comparison = compare_profiles(predicted(), std::nullopt, measured());
  EXPECT_TRUE(rows_beyond(comparison, {{"", 0.25}}).empty());  // step -20 %, peak +25 %
  ASSERT_EQ(rows_beyond(comparison, {{"", 0.2}}).size(), 1u);
  EXPECT_EQ(rows_beyond(comparison, {{"", 0.2}})[0].quantity, "memory.stage0.peak_allocated");
  EXPECT_EQ(rows_beyond(comparison, {{"", 0.1}}).size(), 2u);
}

TEST(RowsBeyond, WithANameJudgesThatQuantityAndItsParts) {
  const ProfileComparison comparison = compare_profiles(predicted(), std::nullopt, measured());
  EXPECT_TRUE(rows_beyond(comparison, {{"memory.stage0.parameters", 0.0}}).empty());
  EXPECT_EQ(rows_beyond(comparison, {{"time", 10.0}}).size(), 1u);  // waiting lacks a side, so no limit excuses it
  EXPECT_THROW(rows_beyond(comparison, {{"tiem", 0.1}}), ConfigError);
}

TEST(ComparisonJson, HasTheKeysOfTheContract) {
  const auto json = nlohmann::json::parse(comparison_json(compare_profiles(predicted(), std::nullopt, measured())));
  EXPECT_EQ(json["schema"], "reckon.comparison/1");
  ASSERT_FALSE(json["rows"].empty());
  for (const auto& entry : json["rows"])
    for (const char* key : {"quantity", "predicted", "simulated", "measured", "error"})
      EXPECT_TRUE(entry.contains(key)) << entry.dump();
  EXPECT_EQ(json["worst"]["time"]["quantity"], "time.waiting");
  EXPECT_TRUE(json["rows"][0]["simulated"].is_null());
}

TEST(ComparisonText, ComponentsThatDoNotFitOnTheScreenAreSummed) {
  StepProfile left = predicted(), right = measured();
  left.time.clear();
  right.time.clear();
  for (int i = 0; i < 30; ++i) {
    const std::string name = "forward.op" + std::to_string(i);
    left.time.push_back({name, Seconds(1.0 / 30), Seconds(1.0 / 30), {}});
    right.time.push_back({name, Seconds(1.25 / 30), Seconds(1.25 / 30), {}});
  }
  const std::string text = comparison_text(compare_profiles(left, std::nullopt, right), {});
  EXPECT_NE(text.find("17 more components"), std::string::npos) << text;  // 13 shown of 30
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 40);
}

}  // namespace
}  // namespace reckon
