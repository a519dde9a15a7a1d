#include "cost_model/score.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "cost_model/score_cells.h"
#include "plan/errors.h"

namespace reckon {
namespace {

ConfigPaths paths() {
  ConfigPaths configs;
  configs.configs = std::string(RECKON_SOURCE_DIR) + "/configs";
  return configs;
}

/// Any card is known, no model is: the reader's rules alone.
ScoreLibrary bare_library() {
  ScoreLibrary library = score_library(paths());
  const HardwareSpec any = load_hardware("h100-80gb-8x", paths());
  library.model = [](const std::string&) { return std::nullopt; };
  library.hardware = [any](const std::string&, std::optional<double>) { return any; };
  return library;
}

RowPlan one(const std::string& header, const std::string& row) {
  return row_plan(CsvTable::parse(header + "\n" + row + "\n", "t.csv"), 0, bare_library());
}

const std::string kHeader =
    "outcome,model,n_layers,hidden,seq_len,gpu,gpus,gpus_per_node,tp,pp,dp,micro_batch,global_batch,recompute,ep";

TEST(ScoreRow, CellsBecomeAPlanWithItsDefaults) {
  const RowPlan row = one(kHeader, "ok,llama-x,24,2048,4096,H100,16,8,2,2,4,1,32,none,");
  ASSERT_EQ(row.skipped, "");
  EXPECT_EQ(row.plan.model.heads, 16);         // hidden / 128
  EXPECT_EQ(row.plan.model.kv_heads, 16);      // heads
  EXPECT_EQ(row.plan.model.ffn_hidden, 8192);  // 4 hidden
  EXPECT_FALSE(row.plan.model.gated_ffn);      // ffn_hidden >= 4 hidden
  EXPECT_TRUE(row.plan.model.tied_head);
  EXPECT_EQ(row.plan.model.vocabulary, 50304);
  EXPECT_TRUE(row.plan.parallel.sequence);  // on when tp > 1
  EXPECT_EQ(row.plan.parallel.data, 4);
  EXPECT_EQ(row.assumptions, (std::vector<std::string>{"n_heads", "n_kv_heads", "ffn_hidden", "gated_mlp", "vocab",
                                                       "sp", "zero_stage", "precision"}));
}

TEST(ScoreRow, TheFirstReasonInOrderSkipsARow) {
  const auto reason = [](const std::string& row) { return one(kHeader, row).skipped; };
  EXPECT_EQ(reason("failed,m,24,2048,4096,H100,16,8,2,2,4,1,32,none,"), "outcome");
  EXPECT_EQ(reason("ok,m LoRA,24,2048,4096,H100,16,8,2,2,4,1,32,none,"), "adapter");
  EXPECT_EQ(reason("ok,bert:x,24,2048,4096,H100,16,8,2,2,4,1,32,none,"), "architecture");
  EXPECT_EQ(reason("ok,m,,2048,4096,H100,16,8,2,2,4,1,32,none,"), "no_model_shape");
  EXPECT_EQ(reason("ok,m A3B,24,2048,,H100,16,8,2,2,4,1,32,none,"), "moe_shape_unknown");
  EXPECT_EQ(reason("ok,m,24,2048,,H100,16,8,2,2,4,1,32,none,"), "no_seq_len");
  EXPECT_EQ(reason("ok,m,24,2048,4096,,16,8,2,2,4,1,32,none,"), "no_gpu");
  EXPECT_EQ(reason("ok,m,24,2048,4096,H100,,8,2,2,4,1,32,none,"), "no_gpu_count");
  EXPECT_EQ(reason("ok,m,24,2048,4096,H100,16,8,,,,1,32,none,"), "no_layout");
  EXPECT_EQ(reason("ok,m,24,2048,4096,H100,16,8,2,2,3,1,32,none,"), "layout_mismatch");
  EXPECT_EQ(reason("ok,m,24,2048,4096,H100,16,8,2,2,4,,32,none,"), "no_micro_batch");
  EXPECT_EQ(reason("ok,m,24,2048,4096,H100,16,8,2,2,4,1,,none,"), "no_global_batch");
  EXPECT_EQ(reason("ok,m,24,2048,4096,H100,16,8,2,2,4,1,30,none,"), "batch_mismatch");
}

TEST(ScoreRow, AnAssumedBatchLeavesTheStepTimeOut) {
  const RowPlan row = one(kHeader, "ok,m,24,2048,4096,H100,16,8,2,,8,2,,none,");
  ASSERT_EQ(row.skipped, "");
  EXPECT_EQ(row.plan.batch.global_batch, 16);  // micro_batch x dp at pp = 1
  EXPECT_TRUE(row.batch_is_assumed);
}

TEST(ScoreRow, EmptyRecomputationIsUnknown) {
  EXPECT_TRUE(one(kHeader, "ok,m,24,2048,4096,H100,16,8,2,2,4,1,32,,").unknown_recompute);
  const RowPlan some = one(kHeader, "ok,m,24,2048,4096,H100,16,8,2,2,4,1,32,3 layers,");
  EXPECT_EQ(some.plan.activations.recompute, Recompute::full);
  EXPECT_EQ(some.plan.activations.recompute_layers, (std::vector<std::int64_t>{3, 3}));
}

TEST(Score, ModelNamesAreComparedWithoutEndings) {
  EXPECT_EQ(normalized_model_name("Llama-3 8B (26.02) truncated to 4 layers"), "llama38b");
}

TEST(Score, UnknownRecomputationScoresAGroupTwice) {
  const std::string text = kHeader + ",source_id,step_time_s\nok,m,24,2048,4096,H100,16,8,2,2,4,1,32,,s,1.0\n";
  const ScoreResult result = score(CsvTable::parse(text, "t.csv"), "t.csv", {}, score_library(paths()));
  ASSERT_EQ(result.groups.size(), 2u);
  EXPECT_EQ(result.groups[0].assume.at("recompute"), "none");
  EXPECT_EQ(result.groups[1].assume.at("recompute"), "full");
  EXPECT_GT(result.rows[1].predicted_step_seconds, result.rows[0].predicted_step_seconds);
  EXPECT_EQ(result.rows_scored, 1);
}

TEST(Score, NothingScoredIsAnError) {
  EXPECT_THROW(score(CsvTable::parse(kHeader + "\nok,,,,,,,,,,,,,,\n", "t.csv"), "t.csv", {}, score_library(paths())),
               ConfigError);
}

std::optional<std::string> shared_data() {
  const char* folder = std::getenv("RECKON_SHARED_DATA");
  return folder == nullptr ? std::nullopt : std::optional<std::string>(folder);
}

TEST(Score, ReaderOfThePublicRunsFindsTheStatedRows) {
  if (!shared_data()) GTEST_SKIP() << "RECKON_SHARED_DATA does not name the folder with measured/training_runs.csv";
  const CsvTable table = CsvTable::read(*shared_data() + "/measured/training_runs.csv");
  const ScoreLibrary library = bare_library();
  std::map<std::string, int> skipped;
  int plans = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string reason = row_plan(table, row, library).skipped;
    if (reason.empty() || reason == "unsupported") ++plans;
    else ++skipped[reason];
  }
  EXPECT_EQ(table.rows(), 3151u);
  EXPECT_EQ(plans, 2470);
  const std::map<std::string, int> stated{
      {"no_model_shape", 286}, {"moe_shape_unknown", 116}, {"architecture", 95},  {"no_gpu_count", 93}, {"adapter", 46},
      {"no_micro_batch", 23},  {"no_seq_len", 20},         {"batch_mismatch", 1}, {"no_layout", 1}};
  EXPECT_EQ(skipped, stated);
}

TEST(ScoreRow, DegreesBelowOneAreSkipped) {
  const auto reason = [](const std::string& column, const std::string& value) {
    return one(kHeader + "," + column, "ok,m,24,2048,4096,H100,16,8,2,2,4,1,32,none,," + value).skipped;
  };
  for (const char* column : {"vpp", "ulysses", "ring", "cp"}) {
    EXPECT_EQ(reason(column, "0"), "layout_mismatch") << column;
    EXPECT_EQ(reason(column, "-2"), "layout_mismatch") << column;
  }
  EXPECT_EQ(one(kHeader, "ok,m,24,2048,4096,H100,16,8,-2,-2,4,1,32,none,").skipped, "layout_mismatch");
  EXPECT_EQ(one(kHeader, "ok,m,24,2048,4096,H100,16,8,2,2,4,1,32,none,0").skipped, "layout_mismatch");
}

TEST(ScoreRow, RecomputedLayersAreAWholeNumber) {
  for (const char* cell : {"1.5", "12x", "-1", "99999999999999999999"})
    EXPECT_EQ(one(kHeader, std::string("ok,m,24,2048,4096,H100,16,8,2,2,4,1,32,") + cell + ",").skipped, "unsupported")
        << cell;
  const RowPlan row = one(kHeader, "ok,m,24,2048,4096,H100,16,8,2,2,4,1,32,5,");
  EXPECT_EQ(row.plan.activations.recompute_layers, (std::vector<std::int64_t>{5, 5}));
}

}  // namespace
}  // namespace reckon
