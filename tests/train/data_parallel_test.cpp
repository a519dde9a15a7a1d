// Several ranks against one, ZeRO-1 against ZeRO-0, and determinism.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <vector>

#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::by_name;
using testing::on_ranks;
using testing::small_plan;

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> first_gradients, weights;  // of rank 0
};

/// `steps` optimizer steps; every rank must end with the same weights.
Outcome train(const Plan& plan, int steps) {
  Outcome result;
  std::mutex mutex;
  std::vector<at::Tensor> final_weights(static_cast<std::size_t>(plan.world_size()));
  on_ranks(plan, [&](RankTrainer& trainer, int rank, MemoryAccount&) {
    for (int s = 0; s < steps; ++s) {
      StepResult step = trainer.forward_backward(s);
      if (s == 0 && rank == 0 && plan.parallel.zero == 0 && !trainer.parameters().layout().by_section)
        result.first_gradients = by_name(trainer.parameters(), trainer.parameters().gradients());
      trainer.update(s, step);
      if (rank != 0) continue;
      result.losses.push_back(step.loss);
      result.norms.push_back(step.gradient_norm);
    }
    const std::lock_guard lock(mutex);
    final_weights[static_cast<std::size_t>(rank)] =
        trainer.parameters().weights().narrow(0, 0, trainer.parameters().layout().elements).clone();
    if (rank == 0) result.weights = by_name(trainer.parameters(), trainer.parameters().weights());
  });
  for (const at::Tensor& weights : final_weights) EXPECT_TRUE(at::equal(weights, final_weights[0]));
  return result;
}

/// Largest difference relative to the largest value.
double difference(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  double worst = 0;
  for (const auto& [name, tensor] : a)
    worst = std::max(worst, (tensor.to(at::kDouble) - b.at(name).to(at::kDouble)).abs().max().item<double>() /
                                tensor.abs().max().item<double>());
  return worst;
}

void expect_identical(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.norms, b.norms);
  for (const auto& [name, tensor] : a.weights) EXPECT_TRUE(at::equal(tensor, b.weights.at(name))) << name;
}

// Sums over a batch split differently differ by their order only: some 48 FP32 additions.
TEST(DataParallel, TwoAndThreeRanksAgreeWithOne) {
  for (const int ranks : {2, 3}) {
    Plan plan = small_plan();
    plan.batch = {12, 1, 6};
    const Outcome one = train(plan, 10);
    plan.parallel.data = ranks;
    const Outcome several = train(plan, 10);
    EXPECT_LT(difference(one.first_gradients, several.first_gradients), 1e-5);
    EXPECT_LT(difference(one.weights, several.weights), 1e-4);
    for (std::size_t step = 0; step < 10; ++step) {
      EXPECT_NEAR(one.losses[step], several.losses[step], 1e-5 * one.losses[step]);
      EXPECT_NEAR(one.norms[step], several.norms[step], 1e-4 * one.norms[step]);
    }
  }
}

TEST(DataParallel, MicroBatchesAccumulateToTheWholeBatch) {
  Plan plan = small_plan();
  plan.batch = {12, 4, 4};
  const Outcome whole = train(plan, 3);
  plan.batch = {12, 1, 4};
  const Outcome parts = train(plan, 3);
  EXPECT_LT(difference(whole.first_gradients, parts.first_gradients), 1e-5);
  EXPECT_NEAR(whole.losses[2], parts.losses[2], 1e-5 * whole.losses[2]);
}

TEST(DataParallel, Zero1EqualsZero0BitForBit) {
  for (const int ranks : {2, 3}) {
    for (const std::int64_t bucket : {40'000'000, 1000}) {
      Plan plan = small_plan();
      plan.batch = {12, 1, 6};
      plan.parallel.data = ranks;
      plan.gradients.bucket = Bytes(bucket);
      const Outcome zero0 = train(plan, 5);
      plan.parallel.zero = 1;
      expect_identical(zero0, train(plan, 5));
    }
  }
}

TEST(DataParallel, Zero1WithBf16ComputeEqualsZero0BitForBit) {
  Plan plan = small_plan();
  plan.precision.compute = plan.activations.stored = NumberFormat::bf16;
  plan.parallel.data = 2;
  const Outcome zero0 = train(plan, 5);
  plan.parallel.zero = 1;
  expect_identical(zero0, train(plan, 5));
}

TEST(DataParallel, ARunRepeatsToTheBit) {
  Plan plan = small_plan();
  plan.parallel.data = 2;
  expect_identical(train(plan, 3), train(plan, 3));
}

TEST(DataParallel, TheSeedDecidesTheRun) {
  Plan plan = small_plan();
  const Outcome first = train(plan, 1);
  plan.train.seed = 2;
  EXPECT_NE(first.losses, train(plan, 1).losses);
}

TEST(DataParallel, LossFallsWhenOneBatchIsLearnt) {
  for (const NumberFormat compute : {NumberFormat::fp32, NumberFormat::bf16}) {
    Plan plan = small_plan();
    plan.precision.compute = plan.activations.stored = compute;
    plan.optimizer.learning_rate = 1e-2;
    double first = 0, last = 0;
    on_ranks(plan, [&](RankTrainer& trainer, int, MemoryAccount&) {
      for (int s = 0; s < 30; ++s) {
        StepResult step = trainer.forward_backward(0);  // always the tokens of step 0
        last = step.loss;
        if (s == 0) first = last;
        trainer.update(s, step);
      }
    });
    EXPECT_NEAR(first, std::log(37.0), 0.05);  // small weights: every token about equally likely
    EXPECT_LT(last, 0.5 * first);
  }
}

}  // namespace
}  // namespace reckon
