// Main gradients and wires below FP32, and optimizer states in 8 bits, against FP32 and against each other.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::on_ranks;
using testing::small_plan;

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> gradients, weights;  // whole tensors; gradients of the first step
};

Outcome train(const Plan& plan, int steps) {
  Outcome outcome;
  testing::FlatBuffers gradients, weights;
  std::mutex mutex;
  on_ranks(plan, [&](RankTrainer& trainer, int rank, MemoryAccount&) {
    for (int s = 0; s < steps; ++s) {
      StepResult step = trainer.forward_backward(s);
      if (s == 0) {
        const std::lock_guard lock(mutex);
        testing::place_gradients(gradients, trainer);
      }
      trainer.update(s, step);
      if (rank != 0) continue;
      outcome.losses.push_back(step.loss);
      outcome.norms.push_back(step.gradient_norm);
    }
    const std::lock_guard lock(mutex);
    testing::place_weights(weights, trainer);
  });
  outcome.gradients = testing::whole_tensors(plan, gradients);
  outcome.weights = testing::whole_tensors(plan, weights);
  return outcome;
}

/// ||a - b|| / ||b|| over all tensors.
double relative_error(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  double difference = 0, norm = 0;
  for (const auto& [name, tensor] : b) {
    const at::Tensor x = a.at(name).to(at::kDouble), y = tensor.to(at::kDouble);
    difference += (x - y).square().sum().item<double>();
    norm += y.square().sum().item<double>();
  }
  return std::sqrt(difference / norm);
}

void expect_identical(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.norms, b.norms);
  for (const auto& [name, tensor] : a.weights) EXPECT_TRUE(at::equal(tensor, b.weights.at(name))) << name;
}

/// Three micro-batches on each of `ranks` ranks; everything is quantized, however small.
Plan accumulating_plan(std::int64_t ranks) {
  Plan plan = small_plan();
  plan.parallel.data = ranks;
  plan.batch = {12, 1, 3 * ranks};
  plan.gradients.plain_below = Bytes(0);
  return plan;
}

Plan with_formats(Plan plan, NumberFormat stored, NumberFormat wire) {
  plan.gradients.stored = stored;
  plan.gradients.wire = wire;
  if (is_block_scaled(wire)) plan.gradients.reduce = GradientReduce::all_to_all_sum;
  return plan;
}

// BF16 rounds to 8 bits of significand: each of three additions and of the sum on the wire by at most 2^-9, together
// less than 4 * 2^-9 of the largest partial sum; in root mean square well below 2^-8.
TEST(GradientFormats, Bf16GradientsDifferFromFp32ByTheirRounding) {
  for (const int zero : {0, 1, 2, 3}) {
    Plan plan = accumulating_plan(2);
    plan.parallel.zero = zero;
    const Outcome exact = train(plan, 1);
    const Outcome stored = train(with_formats(plan, NumberFormat::bf16, NumberFormat::fp32), 1);
    const Outcome sent = train(with_formats(plan, NumberFormat::fp32, NumberFormat::bf16), 1);
    const Outcome both = train(with_formats(plan, NumberFormat::bf16, NumberFormat::bf16), 1);
    for (const Outcome* rounded : {&stored, &sent, &both}) {
      const double error = relative_error(rounded->gradients, exact.gradients);
      EXPECT_GT(error, 0) << "ZeRO-" << zero;
      EXPECT_LT(error, 0x1p-8) << "ZeRO-" << zero;
    }
  }
}

// int8 over blocks of 128: a step is 1/127 of the block's largest value, so a rounding errs by step / sqrt(12), 0.23 %
// of the largest and about 1 % of a typical value (a normal block's largest is 2.7 deviations); FP8 E4M3 keeps 4 bits,
// 1.9 % in root mean square for each of at most five roundings.
TEST(GradientFormats, EightBitGradientsErrAsTheirFormatsDo) {
  struct Case {
    NumberFormat format;
    double most;
  };
  for (const Case& c :
       {Case{NumberFormat::int8, 0.05}, Case{NumberFormat::fp8_e4m3, 0.08}, Case{NumberFormat::fp8_e5m2, 0.15}})
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::stochastic})
      for (const int zero : {0, 1, 2, 3}) {
        Plan plan = accumulating_plan(2);
        plan.parallel.zero = zero;
        const Outcome exact = train(plan, 1);
        plan = with_formats(plan, c.format, c.format);
        plan.gradients.rounding = rounding;
        const double error = relative_error(train(plan, 1).gradients, exact.gradients);
        EXPECT_GT(error, 1e-4) << name_of(c.format) << " ZeRO-" << zero;
        EXPECT_LT(error, c.most) << name_of(c.format) << " ZeRO-" << zero;
      }
}

TEST(GradientFormats, Zero1WithAnExchangeHasTheBitsOfTheWholeSum) {
  for (const NumberFormat stored : {NumberFormat::fp32, NumberFormat::bf16, NumberFormat::int8})
    for (const std::int64_t ranks : {2, 3})
      for (const Rounding rounding : {Rounding::nearest_even, Rounding::stochastic}) {
        Plan plan = with_formats(accumulating_plan(ranks), stored, NumberFormat::int8);
        plan.gradients.rounding = rounding;
        plan.gradients.bucket = Bytes(1500);  // several pieces
        const Outcome zero0 = train(plan, 4);
        plan.parallel.zero = 1;
        expect_identical(zero0, train(plan, 4));
      }
}

// Two nodes of two ranks.
TEST(GradientFormats, Zero1WithAnExchangeByNodeHasTheBitsOfTheWholeSum) {
  for (const NumberFormat stored : {NumberFormat::fp32, NumberFormat::int8})
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::stochastic}) {
      Plan plan = with_formats(accumulating_plan(4), stored, NumberFormat::int8);
      plan.gradients.rounding = rounding;
      plan.gradients.bucket = Bytes(1500);
      const Outcome flat = train(plan, 2);
      plan.gradients.exchange = GradientExchange::hierarchical;
      plan.hardware.devices_per_node = 2;
      const Outcome zero0 = train(plan, 2);
      EXPECT_NE(zero0.losses, flat.losses);  // one rounding more
      plan.parallel.zero = 1;
      expect_identical(zero0, train(plan, 2));
    }
}

// Below the threshold gradients travel in FP32, so nothing is rounded on the way.
TEST(GradientFormats, SmallMessagesTakeThePlainPath) {
  Plan plan = accumulating_plan(2);
  const Outcome exact = train(plan, 2);
  plan = with_formats(plan, NumberFormat::fp32, NumberFormat::int8);
  plan.gradients.plain_below = Bytes(64 * 1024 * 1024);
  expect_identical(exact, train(plan, 2));
}

TEST(GradientFormats, ShardsInHybridGroupsSumQuantizedGradientsOverAllReplicas) {
  for (const int zero : {1, 2, 3}) {
    Plan plan = accumulating_plan(4);
    plan.parallel.zero = zero;
    plan.parallel.zero_group = 2;
    const Outcome exact = train(plan, 1);
    const Outcome narrow = train(with_formats(plan, NumberFormat::int8, NumberFormat::int8), 1);
    EXPECT_LT(relative_error(narrow.gradients, exact.gradients), 0.06) << "ZeRO-" << zero;
  }
}

TEST(GradientFormats, ARunWithStochasticRoundingRepeatsToTheBit) {
  Plan plan = with_formats(accumulating_plan(2), NumberFormat::int8, NumberFormat::fp8_e4m3);
  plan.gradients.rounding = Rounding::stochastic;
  plan.optimizer.states = NumberFormat::int8;
  expect_identical(train(plan, 3), train(plan, 3));
}

/// Large enough for narrow states: tables of 300 x 32 and FFN matrices of 32 x 160.
Plan learning_plan() {
  Plan plan = small_plan();
  plan.model.hidden = 32;
  plan.model.head_dim = 8;
  plan.model.ffn_hidden = 160;
  plan.model.vocabulary = 300;
  plan.optimizer.learning_rate = 5e-3;
  return plan;
}

/// Losses of 40 steps on the tokens of step 0.
std::vector<double> losses_of(const Plan& plan) {
  std::vector<double> losses;
  on_ranks(plan, [&](RankTrainer& trainer, int rank, MemoryAccount&) {
    for (int s = 0; s < 40; ++s) {
      StepResult step = trainer.forward_backward(0);
      trainer.update(s, step);
      if (rank == 0) losses.push_back(step.loss);
    }
  });
  return losses;
}

TEST(OptimizerStates, EightBitMomentsLearnAsFp32MomentsDo) {
  for (const NumberFormat compute : {NumberFormat::fp32, NumberFormat::bf16}) {
    Plan plan = learning_plan();
    plan.precision.compute = plan.activations.stored = compute;
    const std::vector<double> wide = losses_of(plan);
    plan.optimizer.states = NumberFormat::int8;
    const std::vector<double> narrow = losses_of(plan);
    EXPECT_NE(wide, narrow);
    EXPECT_LT(wide.back(), 0.5 * wide.front());
    for (std::size_t step = 0; step < wide.size(); ++step)
      EXPECT_NEAR(narrow[step], wide[step], 0.05 * wide[step]) << "step " << step;
  }
}

TEST(OptimizerStates, EightBitMomentsOfShardsLearnAlikeUnderEveryZeroStage) {
  Plan plan = learning_plan();
  plan.parallel.data = 2;
  const std::vector<double> wide = losses_of(plan);
  plan.optimizer.states = NumberFormat::int8;
  for (const int zero : {0, 1, 2, 3}) {
    plan.parallel.zero = zero;
    EXPECT_NEAR(losses_of(plan).back(), wide.back(), 0.05 * wide.back()) << "ZeRO-" << zero;
  }
}

TEST(OptimizerStates, SmallTensorsKeepFp32Moments) {
  Plan plan = small_plan();  // no tensor has 4096 elements
  const Outcome wide = train(plan, 4);
  plan.optimizer.states = NumberFormat::int8;
  expect_identical(wide, train(plan, 4));
}

}  // namespace
}  // namespace reckon
