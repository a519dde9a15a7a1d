// Runs that are saved and go on: to the bit on the same plan, with the same weights and states on any other.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string>

#include "plan/errors.h"
#include "plan/optimizer_states.h"
#include "runtime/checkpoint/check_checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/safetensors_file.h"
#include "runtime/train/checkpointing.h"
#include "tests/support/temporary_folder.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::on_ranks;
using testing::small_plan;

namespace fs = std::filesystem;

struct Degrees {
  std::string name;
  std::int64_t data = 1, tensor = 1, pipeline = 1, chunks = 1;
  bool sequence = false;
  int zero = 0;
  NumberFormat compute = NumberFormat::fp32;
  std::int64_t zero_group = 0;
};

Plan plan_of(const Degrees& d, bool tied = false, std::int64_t kv_heads = 2) {
  Plan plan = small_plan();
  plan.model.layers = 4;
  plan.model.tied_head = tied;
  plan.model.kv_heads = kv_heads;
  plan.batch = {12, 1, 8};
  plan.parallel.data = d.data;
  plan.parallel.tensor = d.tensor;
  plan.parallel.pipeline = d.pipeline;
  plan.parallel.chunks = d.chunks;
  if (d.chunks > 1) plan.parallel.schedule = ScheduleKind::interleaved;
  plan.parallel.sequence = d.sequence;
  plan.parallel.zero = d.zero;
  plan.parallel.zero_group = d.zero_group;
  plan.precision.compute = plan.activations.stored = d.compute;
  plan.gradients.bucket = Bytes(3000);  // several pieces
  return plan;
}

/// Losses and gradient norms of steps `first` to `last` - 1, from `resume` on or from the start; saves at the end.
std::vector<double> train(const Plan& plan, const fs::path& resume, int last, const fs::path& save = {}) {
  std::vector<double> curve;
  on_ranks(plan, [&](RankTrainer& trainer, int rank, MemoryAccount&) {
    std::int64_t step = 0;
    if (!resume.empty()) step = load_checkpoint(plan, trainer.world(), trainer, find_checkpoint(resume));
    for (; step < last; ++step) {
      const StepResult result = trainer.step(step);
      if (rank != 0) continue;
      curve.push_back(result.loss);
      curve.push_back(result.gradient_norm);
    }
    if (!save.empty()) save_checkpoint(plan, trainer.world(), trainer, save / "checkpoints", step);
  });
  return curve;
}

/// Every state of every tensor of a checkpoint, whole.
std::map<std::string, std::vector<float>> content(const fs::path& run) {
  const CheckpointReader reader(find_checkpoint(run));
  std::map<std::string, std::vector<float>> all;
  for (const std::string& state : reader.manifest().states)
    for (const auto& [name, shape] : reader.shapes()) {
      const std::int64_t columns = shape.size() > 1 ? shape[1] : 1;
      std::vector<float>& values = all[state + "/" + name];
      values.resize(static_cast<std::size_t>(shape[0] * columns));
      reader.read(state, name, {columns, 0, 0, shape[0], columns, 0, shape[0] * columns}, values);
    }
  return all;
}

const std::vector<Degrees> kDegrees = {
    {"one"},
    {"data2", 2},
    {"data3_zero1", 3, 1, 1, 1, false, 1},
    {"data2_zero1_bf16", 2, 1, 1, 1, false, 1, NumberFormat::bf16},
    {"tensor2", 1, 2},
    {"tensor4_replicated_kv", 1, 4},
    {"pipeline2", 1, 1, 2},
    {"pipeline2_chunks2", 1, 1, 2, 2},
    {"data2_tensor2_pipeline2_zero1", 2, 2, 2, 1, true, 1},
    {"data2_zero2", 2, 1, 1, 1, false, 2},
    {"data2_tensor2_zero3", 2, 2, 1, 1, false, 3},
    {"data2_pipeline2_zero3_bf16", 2, 1, 2, 1, false, 3, NumberFormat::bf16},
    {"data4_zero3_in_pairs", 4, 1, 1, 1, false, 3, NumberFormat::fp32, 2},
};

class Resume : public ::testing::TestWithParam<Degrees> {};

std::int64_t batch_that_divides(std::int64_t data) {
  return data == 3 ? 6 : 8;
}

TEST_P(Resume, ContinuesToTheBitOnTheSamePlan) {
  const TemporaryFolder folder;
  Plan plan = plan_of(GetParam(), GetParam().pipeline > 1);  // with a table on two stages
  plan.batch.global_batch = batch_that_divides(GetParam().data);
  const std::vector<double> undisturbed = train(plan, {}, 6);
  std::vector<double> curve = train(plan, {}, 3, folder.path());
  const std::vector<double> rest = train(plan, folder.path(), 6);
  curve.insert(curve.end(), rest.begin(), rest.end());
  EXPECT_EQ(curve, undisturbed);
}

TEST_P(Resume, OnAnotherPlanHasTheSameWeightsAndStates) {
  const TemporaryFolder first, second, back;
  Plan alone = plan_of({"one"}), plan = plan_of(GetParam());
  alone.batch.global_batch = plan.batch.global_batch = batch_that_divides(GetParam().data);
  alone.precision.compute = alone.activations.stored = GetParam().compute;
  train(alone, {}, 3, first.path());
  train(plan, first.path(), 3, second.path());  // only saves again, cut in another way
  EXPECT_EQ(content(second.path()), content(first.path()));
  train(alone, second.path(), 3, back.path());
  EXPECT_EQ(content(back.path()), content(first.path()));

  const std::vector<double> expected = train(alone, first.path(), 6), got = train(plan, first.path(), 6);
  ASSERT_EQ(got.size(), expected.size());
  // BF16 rounds activations where a plan sends them; FP32 differs by the order of sums.
  const double tolerance = GetParam().compute == NumberFormat::bf16 ? 2e-3 : 1e-5;
  for (std::size_t i = 0; i < got.size(); i += 2) EXPECT_NEAR(got[i], expected[i], tolerance * expected[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Plans, Resume, ::testing::ValuesIn(kDegrees),
                         [](const auto& instance) { return instance.param.name; });

/// Large enough for moments in 8 bits: tables of 300 x 32, FFN matrices of 32 x 160.
Plan narrow_plan_of(const Degrees& d) {
  Plan plan = plan_of(d);
  plan.model.hidden = 32;
  plan.model.head_dim = 8;
  plan.model.ffn_hidden = 160;
  plan.model.vocabulary = 300;
  plan.batch.global_batch = batch_that_divides(d.data);
  plan.gradients.bucket = Bytes(100'000);
  plan.optimizer.states = NumberFormat::int8;
  return plan;
}

class ResumeNarrow : public ::testing::TestWithParam<Degrees> {};

TEST_P(ResumeNarrow, ContinuesToTheBitOnTheSamePlan) {
  const TemporaryFolder folder;
  const Plan plan = narrow_plan_of(GetParam());
  const std::vector<double> undisturbed = train(plan, {}, 6);
  std::vector<double> curve = train(plan, {}, 3, folder.path());
  const std::vector<double> rest = train(plan, folder.path(), 6);
  curve.insert(curve.end(), rest.begin(), rest.end());
  EXPECT_EQ(curve, undisturbed);
}

/// ||a - b|| / ||b|| over the states whose names begin so.
double relative_error(const std::map<std::string, std::vector<float>>& a,
                      const std::map<std::string, std::vector<float>>& b, const std::string& state) {
  double difference = 0, norm = 0;
  for (const auto& [name, values] : b) {
    if (!name.starts_with(state)) continue;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double wanted = static_cast<double>(values[i]);
      difference += std::pow(static_cast<double>(a.at(name)[i]) - wanted, 2);
      norm += wanted * wanted;
    }
  }
  return std::sqrt(difference / norm);
}

// Where blocks are cut anew their codes are rounded to at most the largest of two or three scales: half a step of 1/127
// of the largest element, which is about three times a typical one, so 1 % of it; roots double their error when
// squared.
TEST_P(ResumeNarrow, OnAnotherPlanHasTheSameWeightsAndMomentsWithinARounding) {
  const TemporaryFolder first, second;
  Plan alone = narrow_plan_of({"one"}), plan = narrow_plan_of(GetParam());
  alone.batch.global_batch = plan.batch.global_batch;
  alone.precision.compute = alone.activations.stored = GetParam().compute;
  train(alone, {}, 3, first.path());
  train(plan, first.path(), 3, second.path());
  const auto before = content(first.path()), after = content(second.path());
  EXPECT_EQ(relative_error(after, before, "weight/"), 0);
  EXPECT_LT(relative_error(after, before, "first_moment/"), 0.015);
  EXPECT_LT(relative_error(after, before, "second_moment/"), 0.03);
}

INSTANTIATE_TEST_SUITE_P(Plans, ResumeNarrow, ::testing::ValuesIn(kDegrees),
                         [](const auto& instance) { return instance.param.name; });

// Pipeline stages and chunks hold whole tensors, so that their blocks begin where they did; FP32 holds any code.
TEST(Checkpointing, NarrowMomentsMoveExactlyWhereBlocksBeginAlike) {
  const TemporaryFolder start;
  const Plan plan = narrow_plan_of({"one"});
  train(plan, {}, 2, start.path());
  const auto expected = content(start.path());
  std::vector<Plan> others;
  for (const Degrees& degrees : {Degrees{"a", 1, 1, 2}, {"b", 1, 1, 2, 2}, {"c", 2, 1, 2}, {"d", 2}})
    others.push_back(narrow_plan_of(degrees));
  others.push_back(plan);
  others.back().optimizer.states = NumberFormat::fp32;
  for (const Plan& other : others) {
    const TemporaryFolder next;
    train(other, start.path(), 2, next.path());
    EXPECT_EQ(content(next.path()), expected) << other.parallel.pipeline << " stages, data " << other.parallel.data;
  }
}

TEST(Checkpointing, Fp32MomentsAreRoundedIntoEightBits) {
  const TemporaryFolder wide, narrow;
  Plan plan = narrow_plan_of({"one"});
  plan.optimizer.states = NumberFormat::fp32;
  train(plan, {}, 2, wide.path());
  plan.optimizer.states = NumberFormat::int8;
  train(plan, wide.path(), 2, narrow.path());
  const auto before = content(wide.path()), after = content(narrow.path());
  EXPECT_EQ(relative_error(after, before, "weight/"), 0);
  const double error = relative_error(after, before, "first_moment/");
  EXPECT_GT(error, 0);
  EXPECT_LT(error, 0.015);
}

// A byte for each moment and an FP32 scale for every 128, FP32 weights.
TEST(Checkpointing, NarrowMomentsTakeAByteEachOnTheDisk) {
  const TemporaryFolder run;
  const Plan plan = narrow_plan_of({"one"});
  train(plan, {}, 1, run.path());
  const ParameterLayout layout = parameter_layout(plan, {});
  std::int64_t expected = 4 * layout.elements + moment_bytes(plan, layout).value;
  const fs::path file = find_checkpoint(run.path()) / rank_file(0);
  const SafetensorsFile stored(file);
  std::int64_t found = 0, shared = 0;
  for (const StoredTensor& tensor : stored.header().tensors) {
    found += tensor.end - tensor.begin;
    shared += tensor.name.find("_scale/") != std::string::npos;  // a block of two tensors has its scale in both
  }
  EXPECT_GE(found, expected);
  EXPECT_LE(found, expected + 4 * shared);
}

TEST(Checkpointing, MovesFromAnyPlanToAnyOther) {
  const std::vector<Degrees> places = {
      {"a", 1, 2, 2}, {"b", 2, 1, 1, 1, false, 1}, {"c", 1, 4, 1, 1, true}, {"d", 1, 1, 2, 2}};
  for (const bool tied : {false, true}) {
    const TemporaryFolder start;
    train(plan_of(places[0], tied), {}, 2, start.path());
    const auto expected = content(start.path());
    for (const Degrees& to : places) {
      const TemporaryFolder next;
      train(plan_of(to, tied), start.path(), 2, next.path());
      EXPECT_EQ(content(next.path()), expected) << to.name << (tied ? ", tied" : "");
    }
  }
}

TEST(Checkpointing, WhatDoesNotBelongTogetherIsRefusedByName) {
  const TemporaryFolder run;
  Plan plan = small_plan();
  train(plan, {}, 2, run.path());
  const CheckpointReader reader(find_checkpoint(run.path()));
  const auto refusal = [&](const Plan& other) {
    try {
      require_resumable(reader, other);
      return std::string();
    } catch (const ConfigError& error) {
      std::string all;
      for (const Diagnostic& diagnostic : error.diagnostics()) all += to_string(diagnostic) + "\n";
      return all;
    }
  };
  EXPECT_EQ(refusal(plan), "");
  Plan other = plan;
  other.model.ffn_hidden = 32;
  other.model.tied_head = true;
  const std::string text = refusal(other);
  EXPECT_NE(text.find("has model.layers.1.mlp.down_proj.weight as [16, 24], the model needs [16, 32]"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("has \"lm_head.weight\" [37, 16], which the model does not know"), std::string::npos) << text;
  other = plan;
  other.model.layers = 3;
  EXPECT_NE(refusal(other).find("lacks model.layers.2.input_layernorm.weight [16]"), std::string::npos);
  other = plan;
  other.train.steps = 2;
  EXPECT_NE(refusal(other).find("nothing is left to train"), std::string::npos);
}

}  // namespace
}  // namespace reckon
