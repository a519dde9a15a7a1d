// What every command promises: exit codes, one JSON document with --json, plain text where there is no terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

const std::string kTiny = RECKON_SOURCE_DIR "/tests/golden/tiny.yaml";

TEST(Commands, HelpAndVersionSucceedOnStandardOutput) {
  for (const char* line : {"reckon --help", "reckon -h", "reckon --version", "reckon plan --help", "reckon run -h",
                           "reckon compare --help", "reckon calibrate --help", "reckon show --help"}) {
    const CommandResult result = run_command(line);
    EXPECT_EQ(result.exit_code, 0) << line;
    EXPECT_FALSE(result.out.empty()) << line;
    EXPECT_TRUE(result.err.empty()) << line << ": " << result.err;
  }
}

TEST(Commands, EveryHelpShowsAnExample) {
  for (const char* command : {"plan", "run", "compare", "calibrate", "show"})
    EXPECT_NE(run_command(std::string("reckon ") + command + " --help").out.find("Example: reckon"), std::string::npos);
}

TEST(Commands, PlanPrintsOneProfileWithJson) {
  const CommandResult result = run_command("reckon plan " + kTiny + " --json parallel.zero=1 parallel.zero=0");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto profile = nlohmann::json::parse(result.out);
  EXPECT_EQ(profile["schema"], "reckon.profile/1");
  EXPECT_EQ(profile["source"], "predicted");
  EXPECT_EQ(profile["world_size"], 2);
  EXPECT_EQ(profile["plan"]["parallel"]["zero"], 0) << "the last override wins";
  double exposed = 0;
  for (const auto& component : profile["time"]) exposed += component["exposed_seconds"].get<double>();
  const double step = profile["step"]["seconds"];
  EXPECT_NEAR(exposed, step, 1e-9 * step);  // a sum of some tens of doubles
}

TEST(Commands, APlanThatDoesNotFitPrintsItsWholeRecord) {
  const CommandResult result = run_command("reckon plan " + kTiny + " memory.limit=1MiB --json");
  EXPECT_EQ(result.exit_code, 4);
  const auto profile = nlohmann::json::parse(result.out);
  EXPECT_FALSE(profile["verdict"]["fits"]);
  EXPECT_TRUE(profile["verdict"]["breaks"].is_string());
  EXPECT_EQ(profile["verdict"]["limit_bytes"], 1 << 20);
  EXPECT_GT(profile["verdict"]["need_bytes"], 1 << 20);
  EXPECT_FALSE(profile["stages"].empty());
  EXPECT_FALSE(profile["time"].empty());
}

TEST(Commands, ColourOnlyWhenAskedForWhereThereIsNoTerminal) {
  EXPECT_EQ(run_command("reckon plan " + kTiny).out.find('\x1b'), std::string::npos);
  EXPECT_NE(run_command("reckon plan " + kTiny + " --color always").out.find('\x1b'), std::string::npos);
  EXPECT_EQ(run_command("reckon plan " + kTiny + " --json --color always").out.find('\x1b'), std::string::npos);
}

TEST(Commands, PlanFitsOnOneScreen) {
  const std::string out = run_command("reckon plan " + kTiny + " parallel.data=1 parallel.pipeline=2").out;
  EXPECT_LE(std::count(out.begin(), out.end(), '\n'), 50) << out;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST(Commands, APredictionComparedWithItselfHasNoError) {
  const TemporaryFolder folder;
  const std::string line =
      "reckon plan " + kTiny + " --json >a.json && reckon compare a.json a.json --json --tolerance 0";
  const CommandResult result = run_command(line, folder.path());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto comparison = nlohmann::json::parse(result.out);
  ASSERT_FALSE(comparison["rows"].empty());
  for (const auto& row : comparison["rows"]) EXPECT_EQ(row["error"], 0.0) << row.dump();
}

TEST(Commands, TwoProfilesOfOneKindStandUnderTheirNames) {
  const TemporaryFolder folder;
  const std::string line = "reckon plan " + kTiny + " --json >before.json && cp before.json after.json && " +
                           "reckon compare before.json after.json --json";
  const auto columns = nlohmann::json::parse(run_command(line, folder.path()).out)["columns"];
  EXPECT_EQ(columns.front(), "before");
  EXPECT_EQ(columns.back(), "after");
}

TEST(Commands, CompareExitsWithFiveBeyondTheTolerance) {
  const TemporaryFolder folder;
  const std::string two = "reckon plan " + kTiny + " --json >a.json; reckon plan " + kTiny +
                          " --json kernels.loss=fp32_logits >b.json; reckon compare a.json b.json ";
  EXPECT_EQ(run_command(two + "--tolerance 0", folder.path()).exit_code, 5);
  EXPECT_EQ(run_command(two + "--tolerance 1000%", folder.path()).exit_code, 0);
  EXPECT_EQ(run_command(two, folder.path()).exit_code, 0) << "without a tolerance there is no judgement";
}

TEST(Commands, ShowKnowsEveryKind) {
  for (const char* what : {"models", "hardware", "formats", "plans"}) {
    const CommandResult result = run_command(std::string("reckon show --json ") + what);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(nlohmann::json::parse(result.out)["kind"], what);
  }
  const auto model = nlohmann::json::parse(run_command("reckon show llama2-13b --json").out);
  EXPECT_EQ(model["entries"][0]["parameters"], 13015864320);
  EXPECT_NE(run_command("reckon show llama2-13b").out.find("13,015,864,320"), std::string::npos);
  EXPECT_EQ(run_command("reckon show a100-80gb-8x").exit_code, 0);
  EXPECT_EQ(run_command("reckon show H100-SXM").out, run_command("reckon show h100-80gb-8x").out);
  EXPECT_EQ(run_command("reckon show " RECKON_SOURCE_DIR "/configs/models/llama2-13b.yaml").exit_code, 0);
}

TEST(Commands, ConfigsAreFoundFromAnyFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_command("reckon show llama2-13b", folder.path()).exit_code, 0);
  EXPECT_EQ(run_command("RECKON_CONFIGS=" RECKON_SOURCE_DIR "/configs reckon show llama2-13b", "/").exit_code, 0);
}

}  // namespace
}  // namespace reckon::test
