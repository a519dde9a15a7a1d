#include "report/compare_many.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/errors.h"
#include "report/run_history.h"

namespace reckon {
namespace {

StepProfile profile(ProfileSource source, double forward, double optimizer) {
  StepProfile profile;
  profile.source = source;
  profile.parameters = 1000;
  profile.step.tokens = 512;
  profile.step.seconds = Seconds(forward + optimizer);
  profile.time = {{"forward.qkv", Seconds(forward), Seconds(forward), {}},
                  {"optimizer", Seconds(optimizer), Seconds(optimizer), {}}};
  profile.stages.emplace_back();
  profile.stages[0].memory.parameters = profile.stages[0].memory.peak_allocated = Bytes(100);
  return profile;
}

ManyComparison three() {
  return compare_many({"old", "new", "measured"},
                      {profile(ProfileSource::predicted, 0.5, 0.25), profile(ProfileSource::predicted, 0.75, 0.25),
                       profile(ProfileSource::measured, 1.0, 0.25)});
}

TEST(CompareMany, EveryProfileStandsAgainstTheLast) {
  const ManyComparison comparison = three();
  const auto row = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                                [](const ManyRow& candidate) { return candidate.quantity == "time.forward.qkv"; });
  ASSERT_NE(row, comparison.rows.end());
  EXPECT_EQ(row->values, (std::vector<std::optional<double>>{0.5, 0.75, 1.0}));
  EXPECT_EQ(row->errors, (std::vector<std::optional<double>>{-0.5, -0.25}));
}

TEST(CompareMany, BlamesOfEveryProfileAddUpToItsError) {
  for (const ProfileComparison& pair : three().pairs) {
    double blamed = 0, error = 0;
    for (const ComparisonRow& row : pair.rows) {
      if (row.aspect == Aspect::time) blamed += row.blame.value_or(0.0);
      if (row.quantity == "step.seconds") error = *row.error;
    }
    EXPECT_DOUBLE_EQ(blamed, error);
  }
}

TEST(CompareMany, JsonHasAColumnForEach) {
  const auto document = nlohmann::json::parse(many_json(three()));
  EXPECT_EQ(document["columns"].size(), 3u);
  for (const auto& row : document["rows"]) {
    EXPECT_EQ(row["values"].size(), 3u);
    EXPECT_EQ(row["errors"].size(), 2u);
    EXPECT_EQ(row["measured"], row["values"][2]);
  }
}

TEST(RunHistory, ComparesTheNewerHalfWithTheOlder) {
  const auto run = [](double predicted) {
    return past_run("run", profile(ProfileSource::predicted, predicted - 0.25, 0.25),
                    profile(ProfileSource::measured, 0.75, 0.25));
  };
  // Errors of -50 %, +25 % against +25 %, -12.5 %, 0: means 37.5 % and 12.5 %.
  const RunHistory history = run_history({run(0.5), run(1.25), run(1.25), run(0.875), run(1.0)});
  EXPECT_DOUBLE_EQ(history.earlier_error, 0.375);
  EXPECT_DOUBLE_EQ(history.later_error, 0.125);
  EXPECT_TRUE(history.better());
  EXPECT_EQ(history.runs[0].to_blame, "forward.qkv");
  EXPECT_EQ(nlohmann::json::parse(history_json(history))["runs"].size(), 5u);
  EXPECT_FALSE(run_history({run(1.0), run(0.5)}).better());
}

TEST(RunHistory, OneRunIsNoHistory) {
  EXPECT_THROW(run_history({}), ConfigError);
}

}  // namespace
}  // namespace reckon
