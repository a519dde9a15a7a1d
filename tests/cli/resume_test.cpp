// Runs that are disturbed: killed, stopped, out of disk or memory, with damaged files. Each ends in bounded time with a
// named cause and no process left, keeps its last complete checkpoint, and goes on from it to the losses of a run that
// was not disturbed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plan/token_file.h"
#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kGolden = RECKON_SOURCE_DIR "/tests/golden";
constexpr int kSteps = 40;

/// Shell functions for what happens beside a run. $OUT is its folder; ranks are found by their command line.
const std::string kShell = R"sh(
ranks() { pgrep -f "^[^ ]*reckon-rank train --plan $OUT/plan.yaml"; }
lines() { cat $OUT/metrics.jsonl 2>/dev/null | wc -l; }
running() { kill -0 $RUN 2>/dev/null; }
until_step() { while running && [ $(lines) -lt $1 ]; do sleep 0.01; done; }
)sh";

class Resume : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(RECKON_BINARY_DIR "/reckon-rank", X_OK) != 0) GTEST_SKIP() << "this build has no reckon-rank";
  }

  std::string out() const { return folder_.path() + "/run"; }

  std::string run_line(const std::string& options, int steps = kSteps) const {
    return fmt::format("reckon run train.yaml --out {} --steps {} train.checkpoint_every=8 train.timeout=20s {}", out(),
                       steps, options);
  }
  CommandResult run(const std::string& options, int steps = kSteps) const {
    return run_command("cd " + kGolden + "; " + run_line(options, steps));
  }
  /// Starts a run and does `meanwhile` beside it; the result is the run's, with what `meanwhile` printed.
  CommandResult disturbed(const std::string& options, const std::string& meanwhile, int steps = kSteps) const {
    return run_command("cd " + kGolden + "; OUT=" + out() + kShell + run_line(options, steps) + " & RUN=$!\n" +
                       meanwhile + "\nwait $RUN; code=$?; echo; echo left $(ranks | wc -l); exit $code");
  }

  /// A run with RECKON_TEST_FAULT.
  CommandResult faulty(const std::string& fault, const std::string& backend, const std::string& options = {}) const {
    return run_command("cd " + kGolden + "; OUT=" + out() + kShell + "export RECKON_TEST_FAULT=" + fault + "\n" +
                       run_line("--backend " + backend + " " + options) +
                       "; code=$?; echo; echo left $(ranks | wc -l); exit $code");
  }

  /// Step, loss and gradient norm of every line of metrics.jsonl; the steps must be 1, 2, 3, ...
  std::vector<double> curve() const {
    std::vector<double> values;
    std::ifstream file(out() + "/metrics.jsonl");
    int step = 0;
    for (std::string line; std::getline(file, line);) {
      const json metrics = json::parse(line);
      EXPECT_EQ(metrics["step"], ++step);
      values.push_back(metrics["loss"]);
      values.push_back(metrics["grad_norm"]);
    }
    return values;
  }
  /// Of a run to the end that nothing disturbs, in a folder of its own.
  std::vector<double> undisturbed() {
    EXPECT_EQ(run("--backend threads").exit_code, 0);
    const std::vector<double> values = curve();
    EXPECT_EQ(values.size(), 2u * kSteps);
    fs::remove_all(out());
    return values;
  }
  std::string latest() const {
    const std::string name = read_file(out() + "/checkpoints/latest");
    return out() + "/checkpoints/" + name.substr(0, name.find('\n'));
  }
  std::vector<std::string> checkpoint_names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(out() + "/checkpoints")) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  static void expect_phrase(const std::string& text, const std::string& phrase) {
    EXPECT_NE(text.find(phrase), std::string::npos) << "missing: " << phrase << "\n" << text;
  }

  TemporaryFolder folder_;
};

/// `phase` is where a rank of `backend` is killed.
struct Kill {
  std::string backend, phase;
  int rank, step;
};

class KilledRank : public Resume, public testing::WithParamInterface<std::string> {};

/// Checkpoints are made after steps 8, 16, ...; killed in step 13 a run goes on from step 8, killed while it saves
/// step 16 as well, even where that checkpoint is complete but for its mention in `latest`. Without any `latest` it is
/// the complete one that counts. bench/soak kills at random places.
TEST_P(KilledRank, TheCurveContinuesToTheBit) {
  const std::vector<double> expected = undisturbed();
  const std::vector<Kill> kills = {
      {"threads", "start", 0, 1},      {"threads", "forward", 1, 13},   {"threads", "backward", 0, 13},
      {"threads", "reduction", 1, 13}, {"threads", "optimizer", 0, 13}, {"threads", "checkpoint", 1, 16},
      {"threads", "checkpoint", 0, 8}, {"mpi", "start", 1, 1},          {"mpi", "forward", 0, 13},
      {"mpi", "backward", 1, 13},      {"mpi", "reduction", 0, 13},     {"mpi", "optimizer", 1, 13},
      {"mpi", "checkpoint", 0, 16},    {"mpi", "checkpoint", 1, 8},     {"threads", "latest", 0, 16},
      {"threads", "latest", 0, 8},     {"mpi", "latest", 0, 16},        {"mpi", "latest", 0, 8}};
  for (const Kill& kill : kills) {
    if (kill.backend != GetParam()) continue;
    SCOPED_TRACE(fmt::format("{} killed in {} of step {}", kill.rank, kill.phase, kill.step));
    fs::remove_all(out());
    const CommandResult killed = faulty(fmt::format("{}:{}:{}", kill.phase, kill.rank, kill.step), kill.backend);
    EXPECT_EQ(killed.exit_code, 6) << killed.err;
    expect_phrase(killed.out, "left 0");
    const bool named = kill.step > 8, renamed = kill.phase == "latest", saved = named || renamed;
    std::vector<std::string> checkpoints;
    if (named) checkpoints = {"latest", "step-00000008"};
    if (renamed) checkpoints.push_back(fmt::format("step-{:08}", kill.step));
    if (saved) {
      EXPECT_EQ(checkpoint_names(), checkpoints);
      EXPECT_EQ(curve().size() / 2, static_cast<std::size_t>(kill.step % 8 == 0 ? kill.step : kill.step - 1))
          << "every step that was reported is in the metrics";
    } else {
      ASSERT_FALSE(fs::exists(out() + "/checkpoints/latest"));
    }
    const CommandResult resumed = run("--backend " + kill.backend + (saved ? " --resume " + out() : ""));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(curve(), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, KilledRank, testing::Values("threads", "mpi"),
                         [](const auto& instance) { return instance.param; });

TEST_F(Resume, ARehearsedFaultIsSpelledOut) {
  for (const std::string fault :
       {"forward", "forward:0", "nowhere:0:1", "forward:one:1", "forward:0:1:explode", ":::"}) {
    const CommandResult result = faulty(fault, "threads");
    EXPECT_EQ(result.exit_code, 2) << fault;
    expect_phrase(result.err, "RECKON_TEST_FAULT is PHASE:RANK:STEP[:ACTION]");
    fs::remove_all(out());
  }
  EXPECT_EQ(faulty("forward:7:1", "threads").exit_code, 0) << "there is no rank 7";
}

TEST_F(Resume, AnInterruptSavesAtTheEndOfTheStep) {
  const std::vector<double> expected = undisturbed();
  // To the run, or to a rank by a launcher such as srun.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"threads", "kill -TERM $RUN"}, {"mpi", "kill -TERM $RUN"}, {"threads", "kill -TERM $(ranks)"}};
  for (const auto& [backend, signal] : cases) {
    fs::remove_all(out());
    // Without checkpoints in between: all that is saved is saved by the signal.
    const CommandResult stopped =
        disturbed("--backend " + backend + " train.checkpoint_every=0", "until_step 5; " + signal, kSteps * 100);
    EXPECT_EQ(stopped.exit_code, 6) << stopped.err;
    expect_phrase(stopped.err, "was interrupted after step");
    expect_phrase(stopped.err, "--resume " + out());
    expect_phrase(stopped.out, "left 0");
    EXPECT_TRUE(fs::exists(latest() + "/manifest.json"));
    const std::size_t made = curve().size() / 2;
    ASSERT_LT(made, static_cast<std::size_t>(kSteps)) << "the machine was too slow for this test";
    const CommandResult resumed = run("--backend " + backend + " --resume " + out());
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(curve(), expected);
  }
}

TEST_F(Resume, ARankThatDoesNotGoOnEndsTheRunInTime) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"mpi", "backward:1:10:stop"},
                                                                  {"mpi", "forward:0:10:sleep"},
                                                                  {"threads", "optimizer:1:10:sleep"},
                                                                  {"threads", "checkpoint:1:16:sleep"}};
  for (const auto& [backend, fault] : cases) {
    SCOPED_TRACE(backend + " " + fault);
    fs::remove_all(out());
    const auto start = std::chrono::steady_clock::now();
    const CommandResult stuck = faulty(fault, backend, "train.timeout=3s");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_EQ(stuck.exit_code, 7) << stuck.err;
    expect_phrase(stuck.err, "within 3 s");
    expect_phrase(stuck.out, "left 0");
    EXPECT_LT(seconds, 60) << "start, steps, 3 s of silence and a few seconds to end, on a busy machine";
    EXPECT_EQ(checkpoint_names(), (std::vector<std::string>{"latest", "step-00000008"}));
  }
  EXPECT_EQ(run("--backend mpi --resume " + out()).exit_code, 0);
}

TEST_F(Resume, ContinuesOnAnotherPlanInAnotherFolder) {
  ASSERT_EQ(run("--backend threads", 8).exit_code, 0);
  const std::string second = folder_.path() + "/second";
  const CommandResult resumed = run_command("cd " + kGolden + "; reckon run train.yaml --out " + second + " --resume " +
                                            out() + " --steps 12 --backend threads parallel.tensor=2 parallel.zero=1");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  std::ifstream metrics(second + "/metrics.jsonl");
  int step = 0;
  for (std::string line; std::getline(metrics, line);) EXPECT_EQ(json::parse(line)["step"], ++step);
  EXPECT_EQ(step, 12);  // with those of the run before
}

TEST_F(Resume, ADamagedCheckpointIsRefusedByName) {
  ASSERT_EQ(run("--backend threads", 8).exit_code, 0);
  const std::string file = latest() + "/rank-00001.safetensors", good = read_file(file);
  const auto resume = [&] { return run("--backend threads --resume " + out()); };
  const auto write = [&](const std::string& text) { std::ofstream(file, std::ios::binary) << text; };
  write(good.substr(0, good.size() - 100));
  const CommandResult truncated = resume();
  EXPECT_EQ(truncated.exit_code, 2) << truncated.err;
  expect_phrase(truncated.err, "rank-00001.safetensors: has");
  std::string altered = good;
  altered[altered.size() / 2] ^= 1;
  write(altered);
  const CommandResult changed = resume();
  EXPECT_EQ(changed.exit_code, 2) << changed.err;
  expect_phrase(changed.err, "rank-00001.safetensors: was altered");
  write(good);
  EXPECT_EQ(resume().exit_code, 0);
}

TEST_F(Resume, WhatCannotBeResumedIsRefusedAndNothingIsLost) {
  ASSERT_EQ(run("--backend threads", 16).exit_code, 0);
  const std::string metrics = read_file(out() + "/metrics.jsonl");
  const CommandResult again = run("--backend threads");
  EXPECT_EQ(again.exit_code, 2);
  expect_phrase(again.err, "holds the checkpoints of an earlier run");
  const CommandResult done = run("--backend threads --resume " + out(), 16);
  EXPECT_EQ(done.exit_code, 2);
  expect_phrase(done.err, "nothing is left to train");
  const CommandResult earlier = run("--backend threads --resume " + out() + "/checkpoints/step-00000008");
  EXPECT_EQ(earlier.exit_code, 2);
  expect_phrase(earlier.err, "would lose");
  const CommandResult other = run("--backend threads model=gpt2 --resume " + out());
  EXPECT_EQ(other.exit_code, 2);
  expect_phrase(other.err, "lacks model.embed_positions.weight [1024, 768]");
  const CommandResult none = run("--backend threads --resume " + folder_.path());
  EXPECT_EQ(none.exit_code, 2);
  expect_phrase(none.err, "holds no checkpoint");
  EXPECT_EQ(read_file(out() + "/metrics.jsonl"), metrics);
  const CommandResult changed = run("--backend threads train.seed=2 --resume " + out());
  EXPECT_EQ(changed.exit_code, 0) << changed.err;
  expect_phrase(changed.err, "train.seed was '1' and is '2'");
}

TEST_F(Resume, ASecondRunInAFolderIsRefusedAndTheFirstUndisturbed) {
  std::vector<double> expected = undisturbed();
  const CommandResult first = disturbed(
      "--backend threads",
      "until_step 3; " + run_line("--backend threads") + "; echo second $?; until_step 20; kill -TERM $RUN", 100000);
  EXPECT_EQ(first.exit_code, 6) << first.err;
  expect_phrase(first.out, "second 2");
  expect_phrase(first.err, "another run (process ");
  expect_phrase(first.err, "was interrupted after step");
  expect_phrase(first.out, "left 0");
  std::vector<double> made = curve();
  EXPECT_GE(made.size(), 2u * 20);
  const std::size_t common = std::min(made.size(), expected.size());
  made.resize(common), expected.resize(common);
  EXPECT_EQ(made, expected);
}

TEST_F(Resume, OutOfMemoryInOneRankNamesIt) {
  // Stage 1 holds final norm and head (16,640 weights of 16 bytes) on top of what stage 0 has: a limit between the two.
  const auto plan = json::parse(
      run_command("cd " + kGolden + "; reckon plan train.yaml --json parallel.data=1 parallel.pipeline=2").out);
  const auto peak = [&](int stage) { return plan["stages"][stage]["memory"]["peak_allocated"].get<std::int64_t>(); };
  ASSERT_NE(peak(0), peak(1));
  const int larger = peak(1) > peak(0) ? 1 : 0;
  const std::string limit = fmt::format("memory.limit={}B", (peak(0) + peak(1)) / 2);
  for (const std::string backend : {"threads", "mpi"}) {
    fs::remove_all(out());
    const CommandResult result =
        disturbed("parallel.data=1 parallel.pipeline=2 --backend " + backend + " " + limit, "");
    EXPECT_EQ(result.exit_code, 4) << result.err;
    expect_phrase(result.err, fmt::format("rank {} does not fit into memory.limit", larger));
    expect_phrase(result.out, "left 0");
  }
}

TEST_F(Resume, ALossThatIsNotANumberEndsTheRunAndIsNotSaved) {
  const CommandResult result = run("--backend threads train.checkpoint_every=1 optimizer.learning_rate=1e30");
  EXPECT_EQ(result.exit_code, 6) << result.err;
  expect_phrase(result.err, "of step ");
  expect_phrase(result.err, "optimizer.learning_rate");
  const std::size_t finite_steps = curve().size() / 2;
  EXPECT_EQ(fs::path(latest()).filename(), fmt::format("step-{:08}", finite_steps));
}

TEST_F(Resume, FaultsOfOneRankAreNamedAndNothingSavedIsLost) {
  struct Case {
    std::string backend, fault;
    int exit_code;
    std::string says;
  };
  for (const Case& one : {Case{"mpi", "forward:1:10:nan", 6, "the loss of step 10 is nan"},
                          Case{"threads", "forward:0:10:nan", 6, "the loss of step 10 is nan"},
                          Case{"mpi", "backward:1:10:memory", 4, "rank 1 does not fit into memory.limit"},
                          Case{"threads", "reduction:0:10:memory", 4, "rank 0 does not fit into memory.limit"}}) {
    SCOPED_TRACE(one.backend + " " + one.fault);
    fs::remove_all(out());
    const CommandResult result = faulty(one.fault, one.backend, "memory.limit=1GiB");
    EXPECT_EQ(result.exit_code, one.exit_code) << result.err;
    expect_phrase(result.err, one.says);
    expect_phrase(result.out, "left 0");
    EXPECT_EQ(curve().size(), 2u * 9);  // and every line is JSON
    EXPECT_EQ(checkpoint_names(), (std::vector<std::string>{"latest", "step-00000008"}));
  }
}

TEST_F(Resume, DataThatBecomesShorterEndsTheRunByName) {
  const std::string data = folder_.path() + "/data.tokens";
  TokenFileWriter writer(data, 256);
  for (int document = 0; document < 100; ++document) writer.add(std::vector<std::int32_t>(100000, document));
  writer.finish();
  const CommandResult result =
      disturbed("--backend mpi train.data=" + data, "until_step 5; truncate -s 1000 " + data, 100000);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  expect_phrase(result.err, "data.tokens: became shorter");
  expect_phrase(result.out, "left 0");
}

TEST_F(Resume, ExportedWeightsAreWhereAnotherRunStarts) {
  // All rows of all steps are the one row of the file, so step 9 from the checkpoint and step 1 from its exported
  // weights compute the same loss.
  const std::string data = folder_.path() + "/row.tokens", weights = folder_.path() + "/weights";
  TokenFileWriter writer(data, 256);
  std::vector<std::int32_t> row;
  for (int i = 0; i < 33; ++i) row.push_back(i * 7 % 256);
  writer.add(row);
  writer.finish();
  ASSERT_EQ(run("--backend threads train.data=" + data, 8).exit_code, 0);
  const CommandResult exported =
      run_command("reckon export " + out() + " --to huggingface --out " + weights + " --json");
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(json::parse(exported.out)["schema"], "reckon.weights_export/1");
  EXPECT_EQ(json::parse(exported.out)["step"], 8);
  ASSERT_EQ(run("--backend threads train.data=" + data + " --resume " + out(), 9).exit_code, 0);
  const double resumed = curve()[16];
  fs::remove_all(out());
  const CommandResult started = run("--backend threads train.data=" + data + " train.initial_weights=" + weights, 1);
  ASSERT_EQ(started.exit_code, 0) << started.err;
  EXPECT_EQ(curve()[0], resumed);

  const char* python = std::getenv("RECKON_TRANSFORMERS_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "RECKON_TRANSFORMERS_PYTHON names no python with transformers";
  const CommandResult library = run_command(fmt::format(
      "{} " RECKON_SOURCE_DIR "/tests/support/hugging_face.py loss {} {}", python, weights, fmt::join(row, " ")));
  ASSERT_EQ(library.exit_code, 0) << library.err;
  EXPECT_NEAR(std::stod(library.out), resumed, 1e-5 * resumed);
}

/// Runs a script with $OUT/checkpoints on a small disk of its own.
class SmallDisk : public Resume {
 protected:
  void SetUp() override {
    Resume::SetUp();
    if (!IsSkipped() && run_command("unshare -m mount -t tmpfs -o size=1m none /mnt").exit_code != 0)
      GTEST_SKIP() << "no file system can be mounted here";
  }
  CommandResult on_small_disk(const std::string& size, const std::string& script) const {
    const std::string inner = "OUT=" + out() + "; mkdir -p $OUT/checkpoints; mount -t tmpfs -o size=" + size +
                              " none $OUT/checkpoints\n" + script;
    const std::string file = folder_.write("script.sh", inner);
    return run_command("cd " + kGolden + "; unshare -m sh " + file);
  }
};

TEST_F(SmallDisk, WhenItIsFullTheLastCheckpointStaysAndNothingElse) {
  // A checkpoint has 125,504 weights of 12 bytes, 1.5 MB: one fits into 2 MiB, the second does not.
  const CommandResult full =
      on_small_disk("2m", run_line("--backend mpi train.keep_checkpoints=0") +
                              "; echo code $?; ls $OUT/checkpoints; mount -o remount,size=8m none $OUT/checkpoints; " +
                              run_line("--backend threads train.checkpoint_every=0 --resume $OUT") + "; echo code $?");
  expect_phrase(full.out, "code 6\nlatest\nstep-00000008\n");
  expect_phrase(full.err, "No space left on device");
  expect_phrase(full.err, "unfinished-step-00000016/rank-0000");
  expect_phrase(full.out, "code 0");  // goes on from what stayed once there is room, and saves its end
}

TEST_F(SmallDisk, WhenItBecomesReadOnlyTheLastCheckpointStays) {
  const CommandResult full =
      on_small_disk("8m", run_line("--backend threads", 8) + "; mount -o remount,ro none $OUT/checkpoints; " +
                              run_line("--backend threads --resume $OUT", 16) + "; echo code $?; ls $OUT/checkpoints");
  expect_phrase(full.out, "code 6\nlatest\nstep-00000008\n");
  expect_phrase(full.err, "Read-only file system");
  expect_phrase(full.err, "checkpoints/unfinished-step-00000016 cannot be made");
}

TEST_F(SmallDisk, WhenTheFolderOfTheRunIsFullTheFileIsNamed) {
  const std::string inner = "OUT=" + out() + "; mkdir -p $OUT; mount -t tmpfs -o size=600k none $OUT\n" +
                            run_line("--backend threads train.checkpoint_every=0", 100000) +
                            "; echo code $?; ls -A $OUT";
  const std::string file = folder_.write("script.sh", inner);
  const CommandResult full = run_command("cd " + kGolden + "; unshare -m sh " + file);
  expect_phrase(full.out, "code 6\n");
  expect_phrase(full.err, "No space left on device");
  expect_phrase(full.err, out());
}

}  // namespace
}  // namespace reckon::test
