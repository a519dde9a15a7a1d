// The counting allocator, and counted bytes against predicted ones.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>

#include "cost_model/memory.h"
#include "cost_model/predict.h"
#include "plan/errors.h"
#include "runtime/train/counting_allocator.h"
#include "tests/train/counted_memory.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::count_stages;
using testing::Counted;
using testing::of;
using testing::on_ranks;
using testing::small_plan;

TEST(MemoryAccount, BooksByCategoryAndRemembersTheMomentOfThePeak) {
  MemoryAccount account;
  account.book(MemoryCategory::parameters, 100);
  account.book(MemoryCategory::transient, 50);  // peak: 150
  account.release(MemoryCategory::transient, 50);
  account.book(MemoryCategory::activations, 40);  // 140
  EXPECT_EQ(account.peak(), Bytes(150));
  EXPECT_EQ(of(account.at_peak(), MemoryCategory::transient), 50);
  EXPECT_EQ(of(account.at_peak(), MemoryCategory::activations), 0);
  account.move(MemoryCategory::activations, MemoryCategory::gradients, 40);
  EXPECT_EQ(of(account.in_use(), MemoryCategory::gradients), 40);
  EXPECT_EQ(account.total(), Bytes(140));
  account.reset_peak();
  EXPECT_EQ(account.peak(), Bytes(140));
}

TEST(MemoryAccount, RefusesWhatExceedsTheLimitAndNamesTheCategory) {
  MemoryAccount account(Bytes(100), 3);
  account.book(MemoryCategory::parameters, 60);
  EXPECT_NO_THROW(account.book(MemoryCategory::gradients, 40));
  try {
    account.book(MemoryCategory::optimizer, 1);
    FAIL() << "one byte too many was booked";
  } catch (const RunError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::does_not_fit);
    const std::string text = error.what();
    EXPECT_NE(text.find("rank 3"), std::string::npos) << text;
    EXPECT_NE(text.find("optimizer"), std::string::npos) << text;
    EXPECT_NE(text.find("limit of 100 bytes"), std::string::npos) << text;
  }
  EXPECT_EQ(account.total(), Bytes(100));  // the refused block is not booked
}

TEST(CountingAllocator, BooksTensorsOnTheAccountOfTheirThreadUntilTheyAreFreed) {
  install_counting_allocator();
  MemoryAccount account;
  {
    const AccountScope scope(account);
    const CategoryScope category(MemoryCategory::optimizer);
    const at::Tensor tensor = at::empty({10}, at::kFloat);
    EXPECT_EQ(of(account.in_use(), MemoryCategory::optimizer), 40);
    recategorize(tensor.view({2, 5}), MemoryCategory::gradients);  // a view stands for its storage
    EXPECT_EQ(of(account.in_use(), MemoryCategory::optimizer), 0);
    EXPECT_EQ(of(account.in_use(), MemoryCategory::gradients), 40);
  }
  EXPECT_EQ(account.total(), Bytes(0));
}

Counted count_step(const Plan& plan) {
  return count_stages(plan).at(0);
}

void expect_predicted(const Plan& plan, const std::string& what) {
  const std::vector<Counted> stages = count_stages(plan);
  const std::vector<StageProfile> predictions = predict_memory(resolve(plan));
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const Counted& counted = stages[stage];
    const StageMemory& predicted = predictions.at(stage).memory;
    const std::string where = what + ", stage " + std::to_string(stage);
    EXPECT_EQ(of(counted.at_peak, MemoryCategory::parameters), predicted.parameters.value) << where;
    EXPECT_EQ(of(counted.at_peak, MemoryCategory::gradients), predicted.gradients.value) << where;
    EXPECT_EQ(of(counted.at_peak, MemoryCategory::optimizer), predicted.optimizer.value) << where;
    EXPECT_EQ(of(counted.after_step, MemoryCategory::activations), 0) << where;
    // The flash kernel's own scratch grows with neither the model nor the row; it matters in plans as small as these.
    const double tolerance = 0.01 * static_cast<double>(predicted.peak_allocated.value) + 65536.0;
    EXPECT_EQ(of(counted.at_peak, MemoryCategory::communication), predicted.communication.value) << where;
    EXPECT_NEAR(static_cast<double>(counted.peak.value), static_cast<double>(predicted.peak_allocated.value), tolerance)
        << where;
    EXPECT_NEAR(static_cast<double>(of(counted.at_peak, MemoryCategory::activations)),
                static_cast<double>(predicted.activations.value), tolerance)
        << where;
  }
}

/// Large enough that what the model keeps outweighs the kernels' scratch.
Plan memory_plan() {
  Plan plan = small_plan();
  plan.model.hidden = 128;
  plan.model.ffn_hidden = 352;
  plan.model.heads = 4;
  plan.model.head_dim = 32;
  plan.model.layers = 3;
  plan.model.vocabulary = 999;
  plan.batch = {128, 2, 8};
  return plan;
}

TEST(PredictedMemory, EqualsCountedBytesForEveryPrecisionZeroStageAndRecomputeMode) {
  for (const NumberFormat compute : {NumberFormat::fp32, NumberFormat::bf16})
    for (const int zero : {0, 1})
      for (const Recompute mode : {Recompute::none, Recompute::elementwise, Recompute::full}) {
        Plan plan = memory_plan();
        plan.precision.compute = plan.activations.stored = compute;
        plan.parallel.data = 2;
        plan.parallel.zero = zero;
        plan.activations.recompute = mode;
        plan.activations.recompute_layers = {2};
        expect_predicted(plan, "bits " + std::to_string(payload_bits(compute)) + ", zero " + std::to_string(zero) +
                                   ", recompute " + std::to_string(static_cast<int>(mode)));
      }
}

TEST(PredictedMemory, CountsEveryMicroBatchInFlight) {
  Plan plan = memory_plan();
  plan.parallel.schedule = ScheduleKind::gpipe;  // four micro-batches are kept at once
  expect_predicted(plan, "gpipe");
}

TEST(PredictedMemory, HoldsForTensorAndPipelineParallelism) {
  struct Case {
    std::int64_t data, tensor, pipeline, chunks;
    bool sequence;
    ScheduleKind schedule;
  };
  for (const Case& c :
       {Case{1, 2, 1, 1, false, ScheduleKind::gpipe}, Case{1, 2, 1, 1, true, ScheduleKind::gpipe},
        Case{1, 1, 2, 1, false, ScheduleKind::one_forward_one_backward}, Case{1, 1, 2, 1, false, ScheduleKind::gpipe},
        Case{1, 1, 2, 2, false, ScheduleKind::interleaved},
        Case{2, 2, 2, 1, true, ScheduleKind::one_forward_one_backward}}) {
    Plan plan = memory_plan();
    plan.model.layers = 4;
    plan.parallel.data = c.data;
    plan.parallel.tensor = c.tensor;
    plan.parallel.pipeline = c.pipeline;
    plan.parallel.chunks = c.chunks;
    plan.parallel.sequence = c.sequence;
    plan.parallel.schedule = c.schedule;
    expect_predicted(plan, "data " + std::to_string(c.data) + ", tensor " + std::to_string(c.tensor) + ", pipeline " +
                               std::to_string(c.pipeline) + ", chunks " + std::to_string(c.chunks) + ", schedule " +
                               std::to_string(static_cast<int>(c.schedule)));
  }
}

// Every document's lengths give the same peak: buffers are of fixed size.
TEST(PredictedMemory, HoldsForContextParallelism) {
  struct Case {
    std::int64_t ulysses, ring, micro_batch;
    NumberFormat compute;
    Recompute recompute;
  };
  for (const Case& c :
       {Case{1, 1, 2, NumberFormat::fp32, Recompute::none}, Case{1, 1, 2, NumberFormat::bf16, Recompute::none},
        Case{2, 1, 2, NumberFormat::fp32, Recompute::none}, Case{4, 1, 1, NumberFormat::bf16, Recompute::full},
        Case{1, 4, 2, NumberFormat::fp32, Recompute::none}, Case{1, 2, 1, NumberFormat::bf16, Recompute::none},
        Case{2, 2, 2, NumberFormat::fp32, Recompute::full}, Case{2, 2, 1, NumberFormat::bf16, Recompute::none}})
    for (const char* lengths : {"100 28 40 88 5 123", "128", "31 32 33"}) {
      Plan plan = memory_plan();
      plan.precision.compute = plan.activations.stored = c.compute;
      plan.batch = {256, c.micro_batch, 2 * c.micro_batch};
      plan.parallel.ulysses = c.ulysses;
      plan.parallel.ring = c.ring;
      plan.activations.recompute = c.recompute;
      plan.activations.recompute_layers = {2};
      const auto file = std::filesystem::path(::testing::TempDir()) / "reckon_memory_test.lengths";
      std::ofstream out(file);
      for (std::istringstream words(lengths);
           const auto& length :
           std::vector<std::string>(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()))
        out << length << "\n";
      out.close();
      plan.documents.source = file.string();
      const double counted = static_cast<double>(count_step(plan).peak.value);
      const double predicted = static_cast<double>(predict_memory(resolve(plan)).at(0).memory.peak_allocated.value);
      // In bf16 products may go through fp32 copies, which a machine's file has to say.
      EXPECT_NEAR(counted, predicted, c.compute == NumberFormat::fp32 ? 0.0 : 0.01 * predicted)
          << "ulysses " << c.ulysses << ", ring " << c.ring << ", bits " << payload_bits(c.compute) << ", documents "
          << lengths;
    }
}

TEST(PredictedMemory, HoldsForGpt2StyleLayers) {
  Plan plan = memory_plan();
  ModelSpec& model = plan.model;
  model.norm = Norm::layer_norm;
  model.norm_bias = model.qkv_bias = model.projection_bias = model.ffn_bias = true;
  model.position = Position::learned;
  model.position_rows = 128;
  model.activation = Activation::gelu;
  model.gated_ffn = false;
  model.tied_head = true;
  expect_predicted(plan, "gpt2");
}

TEST(MemoryLimit, TheNeedTrainsAndOneByteLessStopsWithItsCategory) {
  Plan plan = memory_plan();
  const Counted counted = count_step(plan);
  plan.memory.limit = counted.peak;
  EXPECT_NO_THROW(count_step(plan));
  plan.memory.limit = counted.peak - Bytes(1);
  try {
    count_step(plan);
    FAIL() << "trained below its need";
  } catch (const RunError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::does_not_fit);
    EXPECT_NE(std::string(error.what()).find("transient of "), std::string::npos) << error.what();
  }
}

// Limits one byte below the sum of the first components, and one byte below the whole need.
TEST(MemoryLimit, TheRunStopsWithTheCategoryThatThePredictionNames) {
  const Plan plan = resolve(memory_plan());
  const std::vector<StageProfile> stages = predict_memory(plan);
  const StageMemory need = stages.at(0).memory;
  Bytes sum(0);
  for (const Bytes component : {need.parameters, need.gradients, need.optimizer, need.activations, need.transient}) {
    sum += component;
    Plan limited = plan;
    limited.memory.limit = sum - Bytes(1);
    const std::string expected = memory_verdict(limited, stages).breaks.value();
    try {
      count_step(limited);
      ADD_FAILURE() << "trained in " << sum.value - 1 << " bytes, where " << expected << " should not fit";
    } catch (const RunError& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::does_not_fit);
      EXPECT_NE(std::string(error.what()).find("memory.limit: " + expected + " of "), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace reckon
