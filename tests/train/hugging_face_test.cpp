// Weights that the Hugging Face library wrote: here they give the losses that it gives. The folders beside this file
// were written by tests/support/hugging_face.py; with RECKON_TRANSFORMERS_PYTHON (a python that has torch and
// transformers) it writes larger ones anew.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "plan/errors.h"
#include "plan/load_plan.h"
#include "plan/token_file.h"
#include "runtime/train/checkpointing.h"
#include "tests/support/temporary_folder.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::on_ranks;
using testing::small_plan;

namespace fs = std::filesystem;

struct Expected {
  std::vector<std::int32_t> tokens;
  std::vector<std::vector<double>> log_probabilities;  // [position][token]
  double loss = 0;
};

Expected read_expected(const fs::path& folder) {
  std::ifstream file(folder / "expected.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  return {json["tokens"], json["log_probabilities"], json["loss"]};
}

Plan plan_for(const fs::path& folder) {
  Plan plan = small_plan();
  plan.model = load_model((folder / "config.json").string(), {});
  plan.train.initial_weights = folder.string();
  plan.batch = {1, 1, 1};
  return plan;
}

/// Mean loss of a row of tokens; the file holds nothing else, so every sample is that row.
double loss_of(Plan plan, const std::vector<std::int32_t>& row) {
  const TemporaryFolder folder;
  TokenFileWriter tokens(folder.path() / "row.tokens", plan.model.vocabulary);
  tokens.add(row);
  tokens.finish();
  plan.train.data = (folder.path() / "row.tokens").string();
  plan.batch.sequence_length = static_cast<std::int64_t>(row.size()) - 1;
  double loss = 0;
  on_ranks(plan, [&](RankTrainer& trainer, int rank, MemoryAccount&) {
    load_initial_weights(plan, trainer.world(), trainer);
    const StepResult result = trainer.forward_backward(0);
    if (rank == 0) loss = result.loss;
  });
  return loss;
}

// Both sides compute in FP32 and add in different orders; losses here are around 3 to 10.
constexpr double kTolerance = 1e-5;

void expect_the_same_losses(const fs::path& folder) {
  const Expected expected = read_expected(folder);
  const Plan plan = plan_for(folder);
  EXPECT_NEAR(loss_of(plan, expected.tokens), expected.loss, kTolerance * expected.loss);
  Plan tensor = plan, pipeline = plan, data = plan;
  tensor.parallel.tensor = 2;
  pipeline.parallel.pipeline = 2;
  data.parallel.data = data.batch.global_batch = 2;
  data.parallel.zero = 1;
  for (const Plan& other : {tensor, pipeline, data})
    EXPECT_NEAR(loss_of(other, expected.tokens), expected.loss, kTolerance * expected.loss);
}

/// log p(v | tokens before) of every position and token from losses alone: rows that differ in their last token only.
void expect_the_same_logits(const fs::path& folder) {
  const Expected expected = read_expected(folder);
  const Plan plan = plan_for(folder);
  double before = 0;  // sum of losses of the positions before
  std::vector<std::int32_t> row{expected.tokens[0]};
  for (std::size_t position = 0; position < expected.log_probabilities.size(); ++position) {
    row.push_back(0);
    for (std::int32_t token = 0; token < plan.model.vocabulary; ++token) {
      row.back() = token;
      const double got = before - static_cast<double>(position + 1) * loss_of(plan, row);
      EXPECT_NEAR(got, expected.log_probabilities[position][static_cast<std::size_t>(token)], kTolerance)
          << "position " << position << ", token " << token;
    }
    row.back() = expected.tokens[position + 1];
    before = static_cast<double>(position + 1) * loss_of(plan, row);
  }
}

const fs::path kFixtures = fs::path(RECKON_SOURCE_DIR) / "tests/train/hugging_face";

TEST(HuggingFace, AModelGivesTheLibrarysLosses) {
  expect_the_same_losses(kFixtures / "untied");
  expect_the_same_losses(kFixtures / "tied");
}

TEST(HuggingFace, RotaryFrequenciesScaledAsInLlama31GiveTheLibrarysLosses) {
  expect_the_same_losses(kFixtures / "scaled");
  Plan unscaled = plan_for(kFixtures / "scaled");
  EXPECT_EQ(unscaled.model.rope_scaling, "llama3");
  unscaled.model.rope_scaling.clear();
  const Expected expected = read_expected(kFixtures / "scaled");
  EXPECT_GT(std::abs(loss_of(unscaled, expected.tokens) - expected.loss), 100 * kTolerance) << "scaling has no effect";
}

TEST(HuggingFace, LogProbabilitiesOfEveryTokenAreTheLibrarys) {
  expect_the_same_logits(kFixtures / "untied");
}

TEST(HuggingFace, AModelWrittenNowGivesTheLibrarysLosses) {
  const char* python = std::getenv("RECKON_TRANSFORMERS_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "RECKON_TRANSFORMERS_PYTHON names no python with transformers";
  const TemporaryFolder folder;
  for (const std::string variant : {"", " --tied", " --rope linear", " --rope llama3"}) {
    const std::string command = std::string(python) + " " RECKON_SOURCE_DIR "/tests/support/hugging_face.py write " +
                                folder.path().string() + " --seed 7 --vocabulary 301 --hidden 64 --ffn 96 --layers 3 " +
                                "--heads 8 --kv-heads 4 --tokens 32" + variant;
    ASSERT_EQ(std::system(command.c_str()), 0);
    expect_the_same_losses(folder.path());
  }
}

TEST(HuggingFace, WhatDoesNotFitIsListed) {
  Plan plan = plan_for(kFixtures / "untied");
  plan.model.layers = 3;
  plan.model.ffn_hidden = 16;
  plan.model.tied_head = true;
  try {
    loss_of(plan, {1, 2, 3});
    FAIL();
  } catch (const ConfigError& error) {
    std::string all;
    for (const Diagnostic& diagnostic : error.diagnostics()) all += to_string(diagnostic) + "\n";
    EXPECT_NE(all.find("lm_head.weight that differs from the embedding"), std::string::npos) << all;
  }
  plan.model.tied_head = false;
  try {
    loss_of(plan, {1, 2, 3});
    FAIL();
  } catch (const ConfigError& error) {
    std::string all;
    for (const Diagnostic& diagnostic : error.diagnostics()) all += to_string(diagnostic) + "\n";
    EXPECT_NE(all.find("lacks model.layers.2.mlp.up_proj.weight [16, 8]"), std::string::npos) << all;
    EXPECT_NE(all.find("has model.layers.0.mlp.up_proj.weight as [12, 8], the model needs [16, 8]"), std::string::npos)
        << all;
  }
}

}  // namespace
}  // namespace reckon
