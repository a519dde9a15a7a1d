// reckon simulate: what it prints and writes, and its exit codes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

TEST(SimulateCommand, WritesTraceAndPicture) {
  const TemporaryFolder folder;
  const auto result = run_command("reckon simulate agoq-megatron-32k --trace trace.json --svg step.svg", folder.path());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("critical path"), std::string::npos);
  EXPECT_NE(result.out.find("alive at the peak"), std::string::npos);
  EXPECT_FALSE(nlohmann::json::parse(read_file(folder.path() + "/trace.json")).at("traceEvents").empty());
  EXPECT_EQ(read_file(folder.path() + "/step.svg").substr(0, 4), "<svg");
}

TEST(SimulateCommand, ExplainsWhatEachPartWouldSave) {
  const auto result = run_command("reckon simulate agoq-megatron-32k --explain");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("if it were free"), std::string::npos);
  EXPECT_NE(result.out.find("bubble"), std::string::npos);
}

TEST(SimulateCommand, ExplainsInJsonWhatEachPartWouldSave) {
  const auto result = run_command("reckon simulate agoq-megatron-32k --explain --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto document = nlohmann::json::parse(result.out);
  const auto& simulation = document.at("simulation");
  const double step = document.at("step").at("seconds");
  double before = step;
  for (const auto& row : simulation.at("savings")) {
    const double saved = row.at("saved_seconds"), without = row.at("step_seconds");
    EXPECT_NEAR(without + saved, step, 1e-9 * step) << row.at("component");
    EXPECT_LE(saved, before);  // largest first
    before = saved;
  }
  EXPECT_GT(simulation.at("savings").size(), 10u);
  double path = 0;
  for (const auto& row : simulation.at("critical_path")) path += row.at("seconds").get<double>();
  EXPECT_NEAR(path, step, 1e-9 * step);
  EXPECT_TRUE(simulation.at("out_of_memory").is_null());
}

TEST(SimulateCommand, APlanBeyondTheLimitNamesTheOpAndANearerPlan) {
  const auto result = run_command("reckon simulate agoq-megatron-32k --memory-limit 30GiB --json");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.err.find("micro-batch"), std::string::npos) << result.err;
  const auto profile = nlohmann::json::parse(result.out);
  EXPECT_EQ(profile.at("source"), "simulated");
  EXPECT_FALSE(profile.at("verdict").at("fits").get<bool>());
  const auto& refused = profile.at("simulation").at("out_of_memory");
  EXPECT_GE(refused.at("micro_batch"), 0);
  EXPECT_FALSE(refused.at("op").get<std::string>().empty());
  EXPECT_LE(refused.at("allocated_bytes"), refused.at("limit_bytes"));
  constexpr std::int64_t kLimit = std::int64_t{30} << 30;
  EXPECT_GT(refused.at("communicator_bytes"), 0);
  EXPECT_EQ(refused.at("limit_bytes").get<std::int64_t>() + refused.at("communicator_bytes").get<std::int64_t>(),
            kLimit);
  EXPECT_NE(result.err.find("(30.00 GiB less "), std::string::npos) << result.err;
}

TEST(SimulateCommand, WhatLivesDuringTheWholeStepHasNoOpMicroBatchAndLayer) {
  const auto result = run_command("reckon simulate agoq-megatron-32k --memory-limit 64MiB --json");
  EXPECT_EQ(result.exit_code, 4);
  const auto refused = nlohmann::json::parse(result.out).at("simulation").at("out_of_memory");
  for (const char* key : {"op", "micro_batch", "layer"}) EXPECT_TRUE(refused.at(key).is_null()) << key;
  EXPECT_EQ(refused.at("limit_bytes"), 0);  // the communicators alone take more than the limit
}

TEST(SimulateCommand, JitterGivesADistributionThatDependsOnTheSeedOnly) {
  const std::string command = "reckon simulate llama3.1-8b-h100-node --samples 5 sim.jitter=0.05 sim.seed=";
  const auto first = run_command(command + "1"), again = run_command(command + "1"), other = run_command(command + "2");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, again.out);
  EXPECT_NE(first.out, other.out);
  EXPECT_NE(first.out.find("5 steps"), std::string::npos);
}

TEST(SimulateCommand, TheNearestChangeFitsUnderTheSameLimit) {
  const std::string command = "reckon simulate agoq-megatron-32k --memory-limit 34GiB --json";
  const auto result = run_command(command);
  ASSERT_EQ(result.exit_code, 4) << result.err;
  const std::string nearest = nlohmann::json::parse(result.out).at("verdict").at("nearest");
  const auto changed = run_command(command + " " + nearest);
  EXPECT_EQ(changed.exit_code, 0) << nearest << ": " << changed.err;
}

TEST(SimulateCommand, WhatFitsNeedsNoMoreThanTheLimit) {
  const auto result = run_command("reckon simulate agoq-agoq-32k --memory-limit 17139521024B --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto verdict = nlohmann::json::parse(result.out).at("verdict");
  EXPECT_LE(verdict.at("need_bytes"), verdict.at("limit_bytes"));
}

TEST(SimulateCommand, AStepBeyondTheClockIsRefused) {
  for (const char* slow : {"sim.compute_scale=1e-6", "sim.network_scale=1e-6", "'sim.slow_ranks={5: 1e6}'"}) {
    const auto result = run_command(std::string("reckon simulate agoq-megatron-32k ") + slow);
    EXPECT_EQ(result.exit_code, 3) << slow << ": " << result.out.substr(0, 400);
    EXPECT_NE(result.err.find("106 days"), std::string::npos) << result.err;
  }
  EXPECT_EQ(run_command("reckon simulate agoq-megatron-32k 'sim.slow_ranks={5: 2, 5: 3}'").exit_code, 2);
}

TEST(SimulateCommand, OutputsReplaceNeitherThePlanNorEachOther) {
  const TemporaryFolder folder;
  const std::string copy = "cp " RECKON_SOURCE_DIR "/configs/plans/agoq-megatron-32k.yaml own.yaml && ";
  for (const char* option : {"--trace", "--svg", "--html"}) {
    const auto result = run_command(copy + "reckon simulate own.yaml " + option + " ./own.yaml", folder.path());
    EXPECT_EQ(result.exit_code, 2) << option;
    EXPECT_NE(result.err.find("is the plan file"), std::string::npos) << result.err;
  }
  EXPECT_EQ(run_command("reckon simulate own.yaml --trace a --svg a", folder.path()).exit_code, 2);
  EXPECT_EQ(run_command("reckon simulate own.yaml --trace ''", folder.path()).exit_code, 2);
  EXPECT_EQ(run_command("reckon plan own.yaml", folder.path()).exit_code, 0) << "the plan is still there";
}

TEST(SimulateCommand, AnUnwritableTraceIsAnError) {
  const auto result = run_command("reckon simulate agoq-megatron-32k --trace /nowhere/trace.json");
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_NE(result.err.find("cannot be written"), std::string::npos);
}

}  // namespace
}  // namespace reckon::test
