// `reckon compare` on what a planner writes: profiles, plans, folders of runs.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

const std::string kTiny = RECKON_SOURCE_DIR "/tests/golden/tiny.yaml";

/// The effects of all rows, against the difference of the two plans.
void expect_rows_add_up(const nlohmann::json& difference) {
  double seconds = 0;
  std::int64_t bytes = 0;
  for (const auto& row : difference["rows"]) {
    if (row["seconds"].is_number()) seconds += row["seconds"].get<double>();
    if (row["bytes"].is_number()) bytes += row["bytes"].get<std::int64_t>();
  }
  const double from = difference["from"]["step_seconds"], to = difference["to"]["step_seconds"];
  EXPECT_NEAR(seconds, to - from, 1e-12 * from);  // a sum of a few doubles
  EXPECT_EQ(bytes, difference["to"]["memory_bytes"].get<std::int64_t>() -
                       difference["from"]["memory_bytes"].get<std::int64_t>());
}

TEST(ComparePlans, KeysAddUpWithWhatTheyDoTogether) {
  const CommandResult result = run_command(
      "reckon compare llama2-70b-128xa100 parallel.tensor=4 parallel.data=4 "
      "parallel.zero=2 activations.recompute=full --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto difference = nlohmann::json::parse(result.out);
  EXPECT_EQ(difference["schema"], "reckon.plan_difference/1");
  expect_rows_add_up(difference);
  std::vector<std::string> keys;
  for (const auto& row : difference["rows"]) keys.push_back(row["key"]);
  EXPECT_EQ(keys, (std::vector<std::string>{"parallel.zero", "activations.recompute", "parallel.data, parallel.tensor",
                                            "together, beyond that"}));
}

TEST(ComparePlans, TwoFilesAreComparedAndAddUp) {
  const CommandResult result = run_command("reckon compare agoq-megatron-32k agoq-agoq-32k --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_rows_add_up(nlohmann::json::parse(result.out));
}

TEST(ComparePlans, TheFirstAndTheLastOutcomeAreThoseOfPlan) {
  const auto difference = nlohmann::json::parse(run_command("reckon compare " + kTiny + " parallel.zero=1 --json").out);
  const auto plan = nlohmann::json::parse(run_command("reckon plan " + kTiny + " parallel.zero=1 --json").out);
  EXPECT_EQ(difference["to"]["step_seconds"], plan["step"]["seconds"]);
  EXPECT_EQ(difference["to"]["memory_bytes"], plan["verdict"]["need_bytes"]);
  EXPECT_EQ(difference["rows"].size(), 1u) << "one key is the whole difference";
}

TEST(ComparePlans, EqualPlansHaveNoRows) {
  const CommandResult result = run_command("reckon compare " + kTiny + " parallel.zero=0 --json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(nlohmann::json::parse(result.out)["rows"].empty());
}

class CompareFiles : public testing::Test {
 protected:
  /// A run's folder as `reckon run` leaves it, its measurement a prediction of other hardware speed.
  std::string make_run(const std::string& name, const std::string& scale) const {
    const std::string path = folder.path() + "/" + name;
    std::filesystem::create_directory(path);
    run_command("reckon plan " + kTiny + " --json >" + path + "/predicted.json");
    run_command("reckon simulate " + kTiny + " --json >" + path + "/simulated.json");
    run_command("reckon simulate " + kTiny + " sim.compute_scale=" + scale +
                " --json | sed 's/\"source\": \"simulated\"/\"source\": \"measured\"/' >" + path + "/measured.json");
    return path;
  }
  const TemporaryFolder folder;
};

TEST_F(CompareFiles, TolerancesNameComponentsAndExitWithFive) {
  const std::string run = make_run("a", "2");
  EXPECT_EQ(run_command("reckon compare " + run).exit_code, 0);
  EXPECT_EQ(run_command("reckon compare " + run + " --tolerance memory=1%").exit_code, 0);
  const CommandResult beyond = run_command("reckon compare " + run + " --tolerance memory=1%,time.optimizer=0,0.1");
  EXPECT_EQ(beyond.exit_code, 5);
  EXPECT_NE(beyond.err.find("beyond the tolerance: step.seconds"), std::string::npos) << beyond.err;
  EXPECT_EQ(run_command("reckon compare " + run + " --tolerance memory=1%,,").exit_code, 2);
  EXPECT_EQ(run_command("reckon compare " + run + " --tolerance nothing=1%").exit_code, 2);
}

TEST_F(CompareFiles, SeveralProfilesStandBesideTheLast) {
  const std::string run = make_run("a", "2");
  const CommandResult result = run_command("reckon compare " + run + "/predicted.json " + run + "/simulated.json " +
                                           run + "/measured.json --json --tolerance time.forward.qkv=1000");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto comparison = nlohmann::json::parse(result.out);
  EXPECT_EQ(comparison["columns"].size(), 3u);
  EXPECT_EQ(comparison["rows"][0]["errors"].size(), 2u);
}

TEST_F(CompareFiles, HistoryTellsWhetherThePredictionGetsBetter) {
  make_run("first", "4");
  const std::string second = make_run("second", "1.0001");
  run_command("touch -d '+1 hour' " + second + "/measured.json");
  const CommandResult result = run_command("reckon compare --history " + folder.path() + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto history = nlohmann::json::parse(result.out);
  ASSERT_EQ(history["runs"].size(), 2u);
  EXPECT_EQ(history["runs"][1]["name"], "second");
  EXPECT_TRUE(history["better"]);
  EXPECT_EQ(run_command("reckon compare --history " + second).exit_code, 2) << "one run is no history";
}

TEST_F(CompareFiles, LossesOfTwoRunsStandSideBySide) {
  const auto log = [](const std::string& run, const std::vector<double>& losses) {
    std::ofstream file(run + "/metrics.jsonl");
    for (std::size_t i = 0; i < losses.size(); ++i)
      file << "{\"step\":" << i + 1 << ",\"loss\":" << losses[i]
           << ",\"grad_norm\":1,\"learning_rate\":0.1,\"seconds\":1,\"tokens_per_second\":1,\"memory_peak_bytes\":1}\n";
  };
  const std::string first = make_run("first", "2"), second = make_run("second", "2");
  log(first, {4, 2, 1});
  log(second, {4, 3, 1.25});
  const CommandResult result =
      run_command("reckon compare " + first + " " + second + " --json --html " + folder.path() + "/losses.html");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto losses = nlohmann::json::parse(result.out)["losses"];
  EXPECT_EQ(losses["names"], (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(losses["parts_at"], 2);
  EXPECT_EQ(losses["largest_at"], 2);
  EXPECT_EQ(losses["largest_difference"], 0.5);
  EXPECT_EQ(losses["final_difference"], 0.25);
  const std::string text = run_command("reckon compare " + first + " " + second).out;
  EXPECT_NE(text.find("the losses part at step 2; furthest at step 2: +50.0 %"), std::string::npos) << text;
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/losses.html"));
}

TEST_F(CompareFiles, ProfilesAndPlansDoNotMix) {
  const std::string run = make_run("a", "1");
  EXPECT_EQ(run_command("reckon compare " + run + "/predicted.json " + kTiny).exit_code, 2);
  EXPECT_EQ(run_command("reckon compare " + run + "/predicted.json").exit_code, 2);
  EXPECT_EQ(run_command("reckon compare " + kTiny).exit_code, 2);
}

}  // namespace
}  // namespace reckon::test
