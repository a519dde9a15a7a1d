// Plans and tables of runs with hostile numbers: refused, or predicted with numbers that can be true. No total may be
// negative (an overflow) and none a NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "cost_model/predict.h"
#include "cost_model/score.h"
#include "plan/load_plan.h"
#include "plan/yaml_document.h"
#include "tests/support/mutate.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

const ConfigPaths kPaths{fs::path(RECKON_SOURCE_DIR) / "configs", {}};

void expect_size(const char* what, std::int64_t bytes) {
  EXPECT_GE(bytes, 0) << what;
  EXPECT_LE(bytes, std::int64_t{1} << 61) << what;
}

void expect_time(const char* what, double seconds) {
  EXPECT_TRUE(std::isfinite(seconds) && seconds >= 0) << what << ": " << seconds;
}

void expect_possible(const StepProfile& profile) {
  EXPECT_GT(profile.parameters, 0);
  EXPECT_GE(profile.parameters, profile.active_parameters);
  EXPECT_GT(profile.step.tokens, 0);
  expect_time("step", profile.step.seconds.value);
  expect_time("flops", profile.step.model_flops.value);
  double exposed = 0;
  for (const TimeComponent& part : profile.time) {
    expect_time(part.component.c_str(), part.seconds.value);
    expect_time(part.component.c_str(), part.exposed_seconds.value);
    exposed += part.exposed_seconds.value;
  }
  EXPECT_NEAR(exposed, profile.step.seconds.value, 1e-9 * profile.step.seconds.value);
  for (const StageProfile& stage : profile.stages) {
    const StageMemory& m = stage.memory;
    for (const Bytes part : {m.parameters, m.gradients, m.optimizer, m.activations, m.transient, m.communication,
                             m.peak_allocated, m.device_used})
      expect_size("memory", part.value);
    EXPECT_EQ(m.parameters + m.gradients + m.optimizer + m.activations + m.transient + m.communication,
              m.peak_allocated);
  }
  for (const TrafficEntry& row : profile.traffic) {
    expect_size("traffic", row.bytes_per_rank);
    EXPECT_GE(row.calls, 0);
  }
}

TEST(FuzzPrediction, PlansOfHostileNumbers) {
  std::vector<std::string> texts;
  for (const char* name : {"agoq-agoq-32k", "llama2-70b-128xa100", "mixtral-8x7b-64xh100", "hsap-2x4-64k"}) {
    const fs::path file = kPaths.configs / "plans" / (std::string(name) + ".yaml");
    if (fs::exists(file)) texts.push_back(read_text_file(file));
  }
  ASSERT_GE(texts.size(), 3u);
  const std::string own_model =
      "reckon: 1\nmodel: {name: m, layers: 8, hidden: 256, heads: 8, kv_heads: 2, ffn_hidden: 512, vocabulary: 1000}\n"
      "hardware: {base: h100-80gb-8x, devices_per_node: 8}\nbatch: {sequence_length: 512, micro_batch: 2, "
      "global_batch: 16}\n"
      "parallel: {data: 2, tensor: 2, pipeline: 2, zero: 1}\ngradients: {bucket: 25 MiB}\n";
  texts.insert(texts.end(), 4, own_model);
  fuzz(texts, Mutator({"2147483648", "16777216", "1048576", "16777217"}), 1500, [&](const std::string& text, Random&) {
    const Plan plan = parse_plan(text, "p.yaml", {}, kPaths);
    if (auto broken = check_plan(plan); !broken.empty()) throw RuleError(std::move(broken));
    expect_possible(predict(resolve(plan)));
    if (testing::Test::HasFailure()) ADD_FAILURE() << text;
  });
}

TEST(FuzzPrediction, TablesOfMeasuredRuns) {
  const std::string text = read_text_file(fs::path(RECKON_SOURCE_DIR) / "tests/golden/measured_runs.csv");
  std::vector<std::string> tables;  // the header and a row each
  const std::size_t header = text.find('\n') + 1;
  for (std::size_t at = header; at < text.size() && tables.size() < 40;) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    tables.push_back(text.substr(0, header) + text.substr(at, end - at));
    at = end;
  }
  const ScoreLibrary library = score_library(kPaths);
  fuzz(tables, Mutator({",", ",,", ",ok,", "selective", "1e9"}), 400, [&](const std::string& mutant, Random&) {
    const ScoreResult result = score(CsvTable::parse(mutant, "t.csv"), "t.csv", {}, library);
    for (const ScoredRow& row : result.rows) {
      expect_time("row", row.predicted_step_seconds.value_or(0));
      expect_size("row", row.predicted_need_bytes.value_or(0));
      expect_size("row", row.predicted_memory_bytes.value_or(0));
    }
  });
}

}  // namespace
}  // namespace reckon
