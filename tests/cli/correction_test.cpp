// The correction factor of a hardware file: stored from a measured run, told wherever it acts, removed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

using nlohmann::json;

const std::string kGolden = RECKON_SOURCE_DIR "/tests/golden";

class Correction : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(run_);
    std::filesystem::copy_file(kGolden + "/cpu.yaml", file_);
  }

  json predicted(const std::string& more = "") const {
    const CommandResult result = run_command(plan_line(more + " --json"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  }
  std::string plan_line(const std::string& options) const {
    return "cd " + kGolden + "; reckon plan train.yaml hardware=" + file_ + " " + options;
  }
  /// A run's folder whose step took `factor` times the predicted one.
  void measure(double factor, const std::string& device = "") const {
    json profile = predicted();
    profile["source"] = "measured";
    profile["step"]["seconds"] = factor * profile["step"]["seconds"].get<double>();
    std::string text = profile.dump();
    if (!device.empty())
      for (std::size_t at = text.find("test processor"); at != std::string::npos; at = text.find("test processor"))
        text.replace(at, std::string("test processor").size(), device);
    std::ofstream(run_ + "/measured.json") << text;
  }
  CommandResult calibrate(const std::string& options) const {
    return run_command("reckon calibrate --out " + file_ + " " + options);
  }

  TemporaryFolder folder_;
  const std::string file_ = folder_.path() + "/machine.yaml", run_ = folder_.path() + "/run";
};

TEST_F(Correction, AfterItThePredictionIsTheMeasuredStepAndSaysSo) {
  const double before = predicted()["step"]["seconds"];
  EXPECT_EQ(predicted()["correction_factor"], 1.0);
  measure(1.2);
  const CommandResult stored = calibrate("--from-run " + run_);
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  EXPECT_NE(stored.err.find("stored in"), std::string::npos);
  const json after = predicted();
  EXPECT_NEAR(after["step"]["seconds"].get<double>() / before, 1.2, 1e-9);
  EXPECT_GT(after["correction_factor"].get<double>(), 1.0);
  for (const char* command : {"plan", "simulate", "search"}) {
    const CommandResult said = run_command("cd " + kGolden + "; reckon " + command + " train.yaml hardware=" + file_);
    EXPECT_NE(said.err.find("a stored correction acts: "), std::string::npos) << command << said.err;
  }
  EXPECT_NE(run_command(plan_line("")).out.find("device times carry the factor"), std::string::npos);
}

TEST_F(Correction, ASecondRunReplacesTheFirst) {
  const double before = predicted()["step"]["seconds"];
  measure(1.2);
  ASSERT_EQ(calibrate("--from-run " + run_).exit_code, 0);
  measure(1.1 / 1.2);  // of the corrected prediction
  ASSERT_EQ(calibrate("--from-run " + run_).exit_code, 0);
  EXPECT_NEAR(predicted()["step"]["seconds"].get<double>() / before, 1.1, 1e-9);
}

TEST_F(Correction, ItCanBeRemoved) {
  const double before = predicted()["step"]["seconds"];
  measure(0.8);
  ASSERT_EQ(calibrate("--from-run " + run_).exit_code, 0);
  ASSERT_EQ(calibrate("--without-correction").exit_code, 0);
  EXPECT_EQ(predicted()["step"]["seconds"].get<double>(), before);
  const CommandResult again = calibrate("--without-correction");
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.err.find("carries no correction"), std::string::npos);
}

TEST_F(Correction, ARunOnOtherHardwareIsRefused) {
  measure(1.2, "another processor");
  const CommandResult refused = calibrate("--from-run " + run_);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("the run was on other hardware"), std::string::npos) << refused.err;
  EXPECT_EQ(predicted()["correction_factor"], 1.0);
}

TEST_F(Correction, AStepThatNoSpeedExplainsIsRefused) {
  measure(50.0);
  const CommandResult refused = calibrate("--from-run " + run_);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("no factor between"), std::string::npos) << refused.err;
}

TEST_F(Correction, APredictedProfileIsNoMeasurement) {
  std::ofstream(run_ + "/measured.json") << predicted().dump();
  const CommandResult refused = calibrate("--from-run " + run_);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("does not hold a measured profile"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace reckon::test
