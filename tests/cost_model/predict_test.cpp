#include "cost_model/predict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "cost_model/estimate_op_times.h"
#include "cost_model/model_flops.h"
#include "cost_model/step_time.h"
#include "plan/errors.h"
#include "plan/load_plan.h"
#include "plan/parameters.h"
#include "tests/support/small_plans.h"

namespace reckon {
namespace {

HardwareSpec cluster() {
  HardwareSpec hardware;
  hardware.name = "test";
  hardware.device.name = "test device";
  hardware.device.peak[NumberFormat::bf16] = FlopsPerSecond(300e12);
  hardware.device.peak[NumberFormat::fp32] = FlopsPerSecond(20e12);
  hardware.device.memory = Bytes(80'000'000'000);
  hardware.device.memory_bandwidth = BytesPerSecond(2000e9);
  hardware.device.multiprocessors = 108;
  hardware.devices_per_node = 8;
  hardware.intra_node = {BytesPerSecond(300e9), Seconds(2e-6), true};
  hardware.inter_node = {BytesPerSecond(25e9), Seconds(5e-6), true};
  return hardware;
}

Plan example() {
  Plan plan = llama3_8b(4096);
  plan.hardware = cluster();
  plan.parallel.data = 2;
  plan.parallel.tensor = 4;
  plan.parallel.pipeline = 2;
  plan.parallel.sequence = true;
  plan.parallel.zero = 1;
  plan.batch = {4096, 1, 16};
  return plan;
}

double exposed_sum(const StepProfile& profile) {
  double sum = 0.0;
  for (const TimeComponent& one : profile.time) sum += one.exposed_seconds.value;
  return sum;
}

TEST(Predict, ExposedTimesAddUpToTheStep) {
  for (const int zero : {0, 1, 2, 3}) {
    for (const std::int64_t pipeline : {1, 2}) {
      Plan plan = example();
      plan.parallel.zero = zero;
      plan.parallel.pipeline = pipeline;
      const StepProfile profile = predict(resolve(plan));
      EXPECT_NEAR(exposed_sum(profile), profile.step.seconds.value, 1e-9 * profile.step.seconds.value);
      for (const TimeComponent& one : profile.time) EXPECT_GE(one.exposed_seconds.value, -1e-12) << one.component;
    }
  }
}

TEST(Predict, ModelFlopsAreSixTimesWeightsAndAttention) {
  // 6 B s (N + l h s) with s + 1 for the diagonal: N all weights but the input table.
  Plan plan = llama3_8b(8192);
  const double tokens = 8192.0, weights = static_cast<double>(count_parameters(plan.model)) - 128256.0 * 4096.0;
  const double expected = 6.0 * tokens * (weights + 32.0 * 4096.0 * 8193.0);
  EXPECT_NEAR(model_flops(plan, single_document_work(plan)).value / expected, 1.0, 1e-12);
}

TEST(Predict, ThroughputAndUtilisationFollowFromTheStep) {
  const StepProfile profile = predict(resolve(example()));
  EXPECT_EQ(profile.step.tokens, 16 * 4096);
  EXPECT_NEAR(profile.step.tokens_per_second_per_device, 16 * 4096 / profile.step.seconds.value / 16.0, 1e-6);
  EXPECT_NEAR(profile.step.mfu, profile.step.model_flops.value / (300e12 * 16.0 * profile.step.seconds.value), 1e-12);
  EXPECT_LT(profile.step.interval_low, profile.step.seconds);
  EXPECT_GT(profile.step.interval_high, profile.step.seconds);
}

TEST(Predict, ResolvingTwiceChangesNothing) {
  const Plan once = resolve(example()), twice = resolve(once);
  EXPECT_EQ(once.parallel.layers_per_stage, twice.parallel.layers_per_stage);
  EXPECT_EQ(once.parallel.zero_group, twice.parallel.zero_group);
  EXPECT_EQ(once.activations.recompute_layers, twice.activations.recompute_layers);
  EXPECT_EQ(once.nodes, twice.nodes);
}

TEST(Predict, FasterHardwareIsNeverSlower) {
  const double base = predict(resolve(example())).step.seconds.value;
  const auto with = [](auto change) {
    Plan plan = example();
    change(plan.hardware);
    return predict(resolve(plan)).step.seconds.value;
  };
  EXPECT_LE(with([](HardwareSpec& h) { h.device.memory_bandwidth *= 2.0; }), base);
  EXPECT_LE(with([](HardwareSpec& h) { h.device.peak[NumberFormat::bf16] *= 2.0; }), base);
  EXPECT_LE(with([](HardwareSpec& h) { h.intra_node.bandwidth *= 2.0; }), base);
  EXPECT_LE(with([](HardwareSpec& h) { h.inter_node.bandwidth *= 2.0; }), base);
  EXPECT_LE(with([](HardwareSpec& h) { h.time.launch *= 0.5; }), base);
}

TEST(Predict, SmallModelsAreBoundByLaunches) {
  Plan plan = gpt(64);
  plan.hardware = cluster();
  plan.hardware.time.launch = Seconds(100e-6);
  const double slow_host = predict(resolve(plan)).step.seconds.value;
  plan.hardware.time.launch = Seconds(50e-6);
  const double fast_host = predict(resolve(plan)).step.seconds.value;
  EXPECT_NEAR(slow_host / fast_host, 2.0, 0.1);  // all but the optimizer scales with the launches
}

TEST(Predict, APrecisionTheDeviceLacksIsRefused) {
  Plan plan = example();
  plan.precision.compute = NumberFormat::fp8_e4m3;
  EXPECT_THROW(predict(resolve(plan)), RuleError);
}

TEST(Predict, WarnsOfOptionsWithoutEffect) {
  Plan plan = example();
  plan.parallel = {};
  plan.parallel.sequence = true;
  plan.parallel.zero = 1;
  std::string all;
  for (const std::string& text : predict(resolve(plan)).warnings) all += text + "\n";
  EXPECT_NE(all.find("sequence"), std::string::npos);
  EXPECT_NE(all.find("zero"), std::string::npos);
}

/// Legal plans of a few model shapes with degrees drawn at random.
Plan random_plan(std::mt19937_64& random) {
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
  };
  Plan plan = random() % 2 == 0 ? llama3_8b(pick({512, 4096})) : llama2_13b(pick({512, 2048}));
  plan.hardware = cluster();
  ParallelSpec& p = plan.parallel;
  p.tensor = pick({1, 2, 4, 8});
  p.sequence = p.tensor > 1 && random() % 2 == 0;
  p.pipeline = pick({1, 2, 4});
  p.chunks = p.pipeline > 1 ? pick({1, 2}) : 1;
  p.schedule = p.chunks > 1        ? ScheduleKind::interleaved
               : random() % 3 == 0 ? ScheduleKind::gpipe
                                   : ScheduleKind::one_forward_one_backward;
  p.data = pick({1, 2, 4});
  p.ulysses = plan.model.kv_heads % (p.tensor * 2) == 0 ? pick({1, 2}) : 1;
  p.ring = pick({1, 1, 2});
  p.zero = static_cast<int>(p.pipeline > 1 ? pick({0, 1}) : pick({0, 1, 2, 3}));
  plan.batch.micro_batch = pick({1, 2});
  plan.batch.global_batch = plan.batch.micro_batch * p.data * p.pipeline * pick({1, 2, 3});
  plan.activations.recompute = random() % 2 == 0 ? Recompute::none : Recompute::full;
  plan.activations.recompute_layers = {plan.activations.recompute == Recompute::full ? pick({0, 1, 5}) : 0};
  if (random() % 3 == 0) plan.activations.stored = NumberFormat::int4;
  plan.kernels.attention = random() % 4 == 0 && p.ring == 1 ? AttentionKernel::unfused : AttentionKernel::flash;
  return plan;
}

TEST(Predict, TenThousandRandomPlansAreFiniteAndNotNegative) {
  std::mt19937_64 random(20240607);
  int predicted = 0;
  for (int i = 0; i < 10000; ++i) {
    const Plan plan = random_plan(random);
    if (!check_plan(plan).empty()) continue;
    const Plan resolved = resolve(plan);
    const StepTime step = step_time(resolved, estimate_op_times(resolved));
    ++predicted;
    ASSERT_TRUE(std::isfinite(step.total.value) && step.total.value > 0.0) << "plan " << i;
    ASSERT_GE(step.bubble_fraction, 0.0);
    ASSERT_LT(step.bubble_fraction, 1.0);
    double sum = 0.0;
    for (const TimeComponent& one : step.components) {
      ASSERT_TRUE(std::isfinite(one.exposed_seconds.value)) << one.component;
      ASSERT_GE(one.seconds.value, 0.0) << one.component;
      ASSERT_GE(one.exposed_seconds.value, -1e-9 * step.total.value) << one.component << " of plan " << i;
      sum += one.exposed_seconds.value;
    }
    ASSERT_NEAR(sum, step.total.value, 1e-9 * step.total.value) << "plan " << i;
  }
  EXPECT_GT(predicted, 5000);
}

}  // namespace
}  // namespace reckon
