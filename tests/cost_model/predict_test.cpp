#include "cost_model/predict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <string>

#include "cost_model/estimate_op_times.h"
#include "cost_model/model_flops.h"
#include "cost_model/state_times.h"
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

// Twice the ranks with the same work each, on the same cores: they take turns, and no network appears between them.
TEST(Predict, RanksBeyondTheCoresOfACpuMachineTakeTurnsOnIt) {
  Plan two = example();
  two.hardware.device.is_cpu = true;
  two.hardware.cores = two.hardware.devices_per_node = 2;
  two.parallel = {};
  two.parallel.data = 2;
  two.batch.global_batch = 2;
  Plan four = two;
  four.parallel.data = 4;
  four.batch.global_batch = 4;
  EXPECT_EQ(resolve(four).nodes, 1);
  const StepProfile slow = predict(resolve(four)), fast = predict(resolve(two));
  const auto seconds = [](const StepProfile& profile, const std::string& name) {
    for (const TimeComponent& component : profile.time)
      if (component.component == name) return component.seconds.value;
    return 0.0;
  };
  EXPECT_GT(seconds(fast, "forward.qkv"), 0.0);
  EXPECT_DOUBLE_EQ(seconds(slow, "forward.qkv"), 2.0 * seconds(fast, "forward.qkv"));
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

std::optional<TrafficEntry> entry_of(const StepProfile& profile, const std::string& group,
                                     const std::string& collective) {
  for (const TrafficEntry& entry : profile.traffic)
    if (entry.group == group && entry.collective == collective) return entry;
  return std::nullopt;
}

// 16 / 2 = 8 micro-batches, each one message of 4096 tokens / tensor 4 of 4096 values.
TEST(Predict, MessagesAreAsWideAsTensorsWhateverComputes) {
  constexpr std::pair<NumberFormat, std::pair<const char*, int>> kFormats[] = {{NumberFormat::fp64, {"fp64", 8}},
                                                                               {NumberFormat::fp32, {"fp32", 4}},
                                                                               {NumberFormat::bf16, {"bf16", 2}},
                                                                               {NumberFormat::fp8_e4m3, {"bf16", 2}}};
  for (const auto& [compute, expected] : kFormats) {
    Plan plan = example();
    plan.precision.compute = compute;
    plan.precision.master = compute == NumberFormat::fp64 ? NumberFormat::fp64 : NumberFormat::fp32;
    plan.hardware.device.peak[compute] = FlopsPerSecond(300e12);
    const StepProfile profile = predict(resolve(plan));
    const auto message = entry_of(profile, "pipeline", "send_receive");
    ASSERT_TRUE(message);
    EXPECT_EQ(message->dtype, expected.first);
    EXPECT_EQ(message->bytes_per_rank, 8 * 4096 / 4 * 4096 * expected.second);
    EXPECT_EQ(entry_of(profile, "shard", "all_gather")->dtype, expected.first);  // parameters after the optimizer
  }
}

// Rows are padded to the tensor group (local_vocabulary); FP8 has a scale of
// 2 bytes for every 128 values.
TEST(Predict, TheTiedTableIsReducedInFp32WhateverTheWireOfOtherGradients) {
  Plan plan = gpt(64);
  plan.hardware = cluster();
  plan.parallel.pipeline = 2;
  plan.parallel.tensor = 4;
  plan.parallel.data = 2;
  plan.batch.global_batch = 4;
  plan.gradients.wire = NumberFormat::fp8_e4m3;
  plan.gradients.reduce = GradientReduce::all_to_all_sum;
  const std::int64_t values = local_vocabulary(plan.model, 4) * 64;
  const StepProfile profile = predict(resolve(plan));
  const auto entry = entry_of(profile, "embedding", "all_reduce");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->bytes_per_rank, 4 * values);  // 2 (2 - 1) / 2 of the message
  EXPECT_DOUBLE_EQ(estimate_op_times(plan).tied_table_reduce.value,
                   state_times(plan, section_weights(plan)).tied_reduce);
}

TEST(Predict, DocumentsOfASourceCutAttentionAndPadding) {
  Plan plan = llama3_8b(4096);
  plan.hardware = cluster();
  plan.batch = {4096, 1, 8};
  const StepProfile single = predict(resolve(plan));
  EXPECT_EQ(single.step.useful_tokens, single.step.tokens);
  EXPECT_EQ(single.packing.documents, 8);
  plan.documents.source = "fineweb";
  const StepProfile packed = predict(resolve(plan));
  EXPECT_LT(packed.step.seconds, single.step.seconds);
  EXPECT_LT(packed.packing.sum_of_squares_share, 0.7);
  EXPECT_EQ(packed.step.useful_tokens,
            std::llround(static_cast<double>(packed.step.tokens) * packed.packing.real_token_share));
  plan.documents.rows = Rows::padded;
  const StepProfile padded = predict(resolve(plan));
  EXPECT_EQ(padded.packing.documents, 8);  // one a row
  EXPECT_LT(padded.step.useful_tokens, packed.step.useful_tokens);
  plan.documents.attention = AttentionScope::whole_row;
  EXPECT_EQ(predict(resolve(plan)).step.seconds, single.step.seconds);  // one causal triangle, whatever it holds
}

TEST(Predict, PlacementOfPacksIsLeftToTheRows) {
  Plan plan = llama3_8b(4096);
  plan.hardware = cluster();
  plan.parallel.ring = 2;
  EXPECT_EQ(resolve(plan).documents.placement, Placement::zigzag);
  plan.documents.source = "fineweb";
  EXPECT_EQ(resolve(plan).documents.placement, Placement::automatic);
  EXPECT_NE(predict(resolve(plan)).packing.placement, "auto");
}

// One layer of 1000 pairs a row and 2 rows: 2 * 1000 * heads (key + value) = 2 * 1000 * 4 * 32 FLOPs a row.
TEST(ModelFlops, SelectiveRecomputationRepeatsAttention) {
  Plan plan = gpt(64);
  plan.batch.global_batch = 2;
  const AttentionWork work{1000, 1, 0};
  plan.activations.recompute = Recompute::selective;
  plan.activations.recompute_layers = {1};
  EXPECT_EQ(recomputed_flops(plan, work).value, 0) << "flash attention keeps no scores to drop";
  plan.kernels.attention = AttentionKernel::unfused;
  EXPECT_DOUBLE_EQ(recomputed_flops(plan, work).value, 2 * 2.0 * 1000 * 4 * 32);
  plan.activations.recompute = Recompute::elementwise;
  EXPECT_EQ(recomputed_flops(plan, work).value, 0);
  plan.activations.recompute = Recompute::full;
  plan.activations.recompute_layers = {2};
  const double both = recomputed_flops(plan, work).value;
  plan.activations.recompute_layers = {9};  // no more than there are
  EXPECT_EQ(recomputed_flops(plan, work).value, both);
}

// 4 ranks hold 8 experts of 3 * 32 * 24 values a layer twice over: 2 ranks with the same 4 experts exchange FP32
// gradients in buckets of 10 kB, each there (all-to-all) and back (all-gather), and send half of it each way.
TEST(Predict, GradientsOfExpertsAreExchangedInTheirOwnBuckets) {
  Plan plan = small_moe();
  plan.hardware = cluster();
  plan.parallel.data = 4;
  plan.parallel.expert = 2;
  plan.batch.global_batch = 4 * plan.batch.micro_batch;
  plan.gradients.reduce = GradientReduce::all_to_all_sum;
  plan.gradients.bucket = Bytes(10'000);
  plan.gradients.plain_below = Bytes(0);
  const StepProfile profile = predict(resolve(plan));
  std::int64_t moe_layers = 0;
  for (std::int64_t layer = 0; layer < plan.model.layers; ++layer) moe_layers += plan.model.layer_is_moe(layer) ? 1 : 0;
  const std::int64_t bytes = moe_layers * 4 * 3 * 32 * 24 * 4;
  for (const char* collective : {"all_to_all", "all_gather"}) {
    const auto entry = entry_of(profile, "expert_gradient", collective);
    ASSERT_TRUE(entry) << collective;
    EXPECT_EQ(entry->bytes_per_rank, bytes / 2) << collective;
    EXPECT_EQ(entry->calls, (bytes + 9'999) / 10'000) << collective;
  }
}

}  // namespace
}  // namespace reckon
