// `reckon run` as a user meets it: its files, its exit codes, and that nothing it started outlives it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kGolden = RECKON_SOURCE_DIR "/tests/golden";
const std::string kRun = "cd " + kGolden + "; reckon run train.yaml ";

class Run : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(RECKON_BINARY_DIR "/reckon-rank", X_OK) != 0) GTEST_SKIP() << "this build has no reckon-rank";
  }
  std::string out() const { return folder_.path() + "/run"; }
  CommandResult run(const std::string& options) const { return run_command(kRun + "--out " + out() + " " + options); }
  json document(const std::string& name) const { return json::parse(read_file(out() + "/" + name)); }

  TemporaryFolder folder_;
};

TEST_F(Run, WritesEveryFileOfTheContract) {
  const CommandResult result = run("--backend threads --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(json::parse(result.out)["source"], "measured");
  EXPECT_EQ(document("predicted.json")["source"], "predicted");
  EXPECT_EQ(document("simulated.json")["source"], "simulated");
  EXPECT_EQ(document("measured.json"), json::parse(result.out));
  EXPECT_EQ(document("comparison.json")["schema"], "reckon.comparison/1");
  const std::string page = read_file(out() + "/report.html");
  EXPECT_NE(page.find("\"source\":\"measured\""), std::string::npos) << "the page has the measured profile";
  EXPECT_NE(page.find("\"metrics\":[{\"step\":1"), std::string::npos) << "and the loss curve";
  EXPECT_TRUE(fs::exists(out() + "/plan.yaml"));
  EXPECT_FALSE(document("trace.json").empty());
  EXPECT_FALSE(document("simulated_trace.json").empty());
  std::ifstream metrics(out() + "/metrics.jsonl");
  int steps = 0;
  for (std::string line; std::getline(metrics, line);) {
    const json step = json::parse(line);
    EXPECT_EQ(step["step"], ++steps);
    for (const char* key : {"loss", "grad_norm", "learning_rate", "seconds", "tokens_per_second", "memory_peak_bytes"})
      EXPECT_TRUE(step[key].is_number()) << key;
  }
  EXPECT_EQ(steps, 3);
}

TEST_F(Run, StatesAndTrafficArePredictedExactly) {
  ASSERT_EQ(run("--backend threads").exit_code, 0);
  int rows = 0;
  const json comparison = document("comparison.json");
  for (const json& row : comparison["rows"]) {
    const std::string quantity = row["quantity"];
    const bool state =
        quantity.ends_with(".parameters") || quantity.ends_with(".gradients") || quantity.ends_with(".optimizer");
    const bool exact = quantity.starts_with("traffic.") || (quantity.starts_with("memory.") && state);
    EXPECT_TRUE(!exact || row["predicted"] == row["measured"]) << row.dump();
    rows += exact;
  }
  EXPECT_GE(rows, 5);
}

TEST_F(Run, MpiGivesTheSameLossesAsThreads) {
  const auto losses = [&](const std::string& backend) {
    EXPECT_EQ(run("--backend " + backend).exit_code, 0);
    std::vector<double> values;
    std::ifstream metrics(out() + "/metrics.jsonl");
    for (std::string line; std::getline(metrics, line);) values.push_back(json::parse(line)["loss"]);
    return values;
  };
  const auto threads = losses("threads");
  EXPECT_EQ(threads.size(), 3u);
  EXPECT_EQ(losses("mpi"), threads);
}

TEST_F(Run, JoinsTheLauncherItRunsUnder) {
  const std::string mpirun =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none ";
  const std::string plan = kGolden + "/train.yaml hardware=" + kGolden + "/cpu.yaml --out " + out();
  const CommandResult joined = run_command(mpirun + "-n 2 " RECKON_BINARY_DIR "/reckon run " + plan);
  EXPECT_EQ(joined.exit_code, 0) << joined.err;
  EXPECT_TRUE(fs::exists(out() + "/comparison.json"));
  const CommandResult wrong = run_command(mpirun + "-n 3 " RECKON_BINARY_DIR "/reckon run " + plan);
  EXPECT_EQ(wrong.exit_code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("3 processes"), std::string::npos) << wrong.err;
}

TEST_F(Run, ALimitStopsPlanAndRunAtTheSameComponent) {
  // Parameters and gradients fit, the optimizer does not.
  const CommandResult planned = run_command("cd " + kGolden + "; reckon plan train.yaml --json memory.limit=1200KiB");
  EXPECT_EQ(planned.exit_code, 4);
  EXPECT_EQ(json::parse(planned.out)["verdict"]["breaks"], "optimizer");
  const CommandResult ran = run("--backend threads memory.limit=1200KiB");
  EXPECT_EQ(ran.exit_code, 4) << ran.err;
  EXPECT_NE(ran.err.find("optimizer"), std::string::npos) << ran.err;
  EXPECT_FALSE(fs::exists(out() + "/measured.json"));
}

TEST_F(Run, BetweenTheNeedsOfNAndNMinusOneLayersAutoPicksNWhichTrainsAndOneLessDoesNot) {
  const auto need = [&](const std::string& layers) {
    const std::string plan = "cd " + kGolden + "; reckon plan train.yaml --json activations.recompute=full ";
    const CommandResult planned = run_command(plan + "'activations.recompute_layers=[" + layers + "]'");
    return json::parse(planned.out)["verdict"]["need_bytes"].get<std::int64_t>();
  };
  const std::string limit = std::to_string((need("0") + need("1")) / 2);
  const std::string between = "--backend threads activations.recompute=full memory.limit=" + limit + "B ";
  const CommandResult chosen = run(between);
  ASSERT_EQ(chosen.exit_code, 0) << chosen.err;
  EXPECT_EQ(document("measured.json")["stages"][0]["recomputed_layers"], 1);
  const CommandResult fewer = run(between + "'activations.recompute_layers=[0]'");
  EXPECT_EQ(fewer.exit_code, 4) << fewer.err;
  EXPECT_NE(fewer.err.find("memory.limit"), std::string::npos) << fewer.err;
}

TEST_F(Run, OnePerCentAboveTheNeedTrains) {
  const auto plan = json::parse(run_command("cd " + kGolden + "; reckon plan train.yaml --json").out);
  const auto need = plan["verdict"]["need_bytes"].get<std::int64_t>();
  const CommandResult result = run("--backend threads memory.limit=" + std::to_string(need + need / 100) + "B");
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(Run, AnInterruptEndsEveryProcess) {
  const std::string marker = out() + "/plan.yaml";  // on the ranks' command lines
  const CommandResult result =
      run_command("cd " + kGolden + "; timeout --signal=INT --kill-after=30 4 reckon run train.yaml --out " + out() +
                  " --steps 1000000; echo exit $?; sleep 1; pgrep -fc '[p]lan " + marker + "'");
  EXPECT_NE(result.out.find("\n0\n"), std::string::npos) << "processes left: " << result.out << result.err;
}

TEST_F(Run, LeavesStandardInputToTheCaller) {
  const CommandResult result =
      run_command("cd " + kGolden + "; printf 'kept\\n' | { reckon run train.yaml --out " + out() + "; cat; }");
  EXPECT_TRUE(result.out.ends_with("kept\n")) << result.out << result.err;
}

TEST_F(Run, OldResultsAreNotTakenForNewOnes) {
  ASSERT_EQ(run("--backend threads").exit_code, 0);
  EXPECT_NE(run("--backend threads memory.limit=1200KiB").exit_code, 0);
  EXPECT_FALSE(fs::exists(out() + "/measured.json"));
  EXPECT_FALSE(fs::exists(out() + "/comparison.json"));
}

TEST_F(Run, ARefusalLeavesTheFolderAlone) {
  for (const std::string& refused :
       {std::string("kernels.dropout=true"), "train.data=" + folder_.path() + "/missing", std::string("--resume x")}) {
    EXPECT_EQ(run("--backend threads " + refused).exit_code, 2) << refused;
    EXPECT_FALSE(fs::exists(out())) << refused;
  }
  ASSERT_EQ(run("--backend threads").exit_code, 0);
  const std::string plan = read_file(out() + "/plan.yaml"), measured = read_file(out() + "/measured.json");
  EXPECT_EQ(run("--backend threads batch.micro_batch=1 kernels.dropout=true").exit_code, 2);
  EXPECT_EQ(read_file(out() + "/plan.yaml"), plan);
  EXPECT_EQ(read_file(out() + "/measured.json"), measured);
}

TEST_F(Run, WithoutGpuTrainingInTheBuildNcclSaysWhatBringsIt) {
  const CommandResult version = run_command("reckon --version --json");
  if (version.out.find("nccl") != std::string::npos) GTEST_SKIP() << "this build trains on GPUs";
  const CommandResult result = run("--backend nccl");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("trains on processors only"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("./bootstrap build --preset gpu"), std::string::npos) << result.err;
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(Run, UnderALauncherThreadsAndAnUnnamedFolderAreRefused) {
  const std::string launched =
      "cd " + kGolden + "; OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 reckon run train.yaml ";
  const CommandResult threads = run_command(launched + "--backend threads --out " + out());
  EXPECT_EQ(threads.exit_code, 2);
  EXPECT_NE(threads.err.find("--backend threads"), std::string::npos) << threads.err;
  const CommandResult unnamed = run_command(launched);
  EXPECT_EQ(unnamed.exit_code, 2);
  EXPECT_NE(unnamed.err.find("--out"), std::string::npos) << unnamed.err;
}

TEST_F(Run, MeasuredComponentsAddUpToTheStep) {
  ASSERT_EQ(run("--backend threads").exit_code, 0);
  const json measured = document("measured.json");
  double sum = 0;
  for (const json& component : measured["time"]) sum += component["exposed_seconds"].get<double>();
  const double step = measured["step"]["seconds"];
  EXPECT_NEAR(sum / step, 1.0, 1e-9);  // a sum of some twenty rounded numbers
}

TEST_F(Run, BadDataIsRefusedBeforeTraining) {
  fs::create_directory(folder_.path() + "/empty");
  const CommandResult empty = run("--backend threads train.data=" + folder_.path() + "/empty");
  EXPECT_EQ(empty.exit_code, 2) << empty.err;
  EXPECT_NE(empty.err.find("empty"), std::string::npos);
  const std::string binary = folder_.write("data.txt", std::string(400, 'a') + "\xff\xfe" + std::string(400, 'b'));
  const CommandResult invalid = run("--backend threads train.data=" + binary);
  EXPECT_EQ(invalid.exit_code, 2) << invalid.err;
  EXPECT_NE(invalid.err.find("UTF-8"), std::string::npos) << invalid.err;
  EXPECT_EQ(run("--backend threads train.data=" + folder_.path() + "/missing").exit_code, 2);
}

TEST_F(Run, AnOutputFolderThatCannotBeWrittenIsRefused) {
  folder_.write("run", "a file where the folder should be");
  const CommandResult result = run("--backend threads");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("cannot be written"), std::string::npos) << result.err;
}

TEST(RunWithoutRanks, SaysWhichPresetBringsThem) {
  if (::access(RECKON_BINARY_DIR "/reckon-rank", X_OK) == 0) GTEST_SKIP() << "this build has reckon-rank";
  const TemporaryFolder folder;
  const CommandResult result = run_command(kRun + "--out " + folder.path() + "/run");
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_NE(result.err.find("--preset cpu"), std::string::npos) << result.err;
  EXPECT_FALSE(fs::exists(folder.path() + "/run"));
}

}  // namespace
}  // namespace reckon::test
