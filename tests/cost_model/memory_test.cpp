#include "cost_model/memory.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "cost_model/allocation_sequence.h"
#include "cost_model/schedule_points.h"
#include "cost_model/stage_states.h"
#include "plan/activation_accounting.h"
#include "plan/pipeline_schedule.h"
#include "tests/support/small_plans.h"

namespace reckon {
namespace {

HardwareSpec gpu(double memory_gb = 80) {
  HardwareSpec hardware;
  hardware.device.memory = Bytes(static_cast<std::int64_t>(memory_gb * 1e9));
  hardware.context = Bytes(700'000'000);
  hardware.communicator = Bytes(400'000'000);
  return hardware;
}

Plan on_gpu(Plan plan) {
  plan.hardware = gpu();
  return plan;
}

/// States of a rank that holds one layer of so many weights.
StateMemory states_of(const Plan& plan, std::int64_t weights) {
  return rank_states(plan, {.dense_layer = weights}, {.dense = 1});
}

Bytes buffers_of(const Plan& plan, std::int64_t weights) {
  return rank_buffers(plan, {.dense_layer = weights}, {.dense = 1});
}

double bytes_per_parameter(Plan plan, int zero, std::int64_t data) {
  plan.parallel.zero = zero;
  plan.parallel.data = data;
  return static_cast<double>(states_of(plan, 1'000'000'000).total().value) / 1e9;
}

// Megatron-LM's distributed optimizer page: bf16 with fp32 gradients 18, with ZeRO-1 6 + 12/d; fp32 16 and 8 + 8/d.
TEST(StateMemory, BytesAParameter) {
  Plan plan = llama3_8b(1024);
  EXPECT_DOUBLE_EQ(bytes_per_parameter(plan, 0, 8), 18);
  EXPECT_DOUBLE_EQ(bytes_per_parameter(plan, 1, 8), 6 + 12.0 / 8);
  EXPECT_DOUBLE_EQ(bytes_per_parameter(plan, 2, 8), 2 + 16.0 / 8);
  EXPECT_DOUBLE_EQ(bytes_per_parameter(plan, 3, 8), 18.0 / 8);
  plan.precision.compute = NumberFormat::fp32;
  EXPECT_DOUBLE_EQ(bytes_per_parameter(plan, 0, 8), 16);
  EXPECT_DOUBLE_EQ(bytes_per_parameter(plan, 1, 8), 8 + 8.0 / 8);
}

// AGoQ: 2 weight + 1 gradient + 4 master + 2 moments = 9, and the scales: bf16 a block of 128 for the gradient, fp32
// for each moment.
TEST(StateMemory, EightBitGradientsAndMoments) {
  Plan plan = llama3_8b(1024);
  plan.gradients.stored = NumberFormat::fp8_e4m3;
  plan.optimizer.states = NumberFormat::int8;
  EXPECT_DOUBLE_EQ(bytes_per_parameter(plan, 0, 1), 9 + 2.0 / 128 + 2 * 4.0 / 128);
}

// PyTorch DDP's buckets: a second copy in bf16, 2 bytes a weight, where there is something to reduce.
TEST(CommunicationBuffers, BucketCopiesHoldAllGradientsInComputePrecision) {
  Plan plan = llama3_8b(1024);
  plan.gradients.bucket_copies = true;
  EXPECT_EQ(buffers_of(plan, 1'000'000).value, 0);
  plan.parallel.data = 4;
  EXPECT_EQ(buffers_of(plan, 1'000'000).value, 2'000'000);
}

// 55 tensors [1024, 4096] in bf16: only where the tensor group gathers rows and no pipeline paces the host.
TEST(CommunicationBuffers, PendingCollectivesHoldWholeTensors) {
  Plan plan = llama3_8b(1024);
  plan.kernels.pending_collectives = 55;
  EXPECT_EQ(micro_batch_buffers(plan, 1, 1, 0).value, 0);
  plan.parallel.tensor = 8;
  plan.parallel.sequence = true;
  EXPECT_EQ(micro_batch_buffers(plan, 1, 1, 0).value, 55LL * 1024 * 4096 * 2);
  plan.parallel.pipeline = 2;
  EXPECT_EQ(micro_batch_buffers(plan, 1, 1, 0).value, 0);
}

TEST(StateMemory, ShardsArePaddedToEqualSize) {
  Plan plan = llama3_8b(1024);
  plan.parallel.zero = 1;
  plan.parallel.data = 8;
  const StateMemory memory = states_of(plan, 1001);  // padded to 1008
  EXPECT_EQ(memory.parameters.value, 2 * 1008);
  EXPECT_EQ(memory.gradients.value, 4 * 1008);
  EXPECT_EQ(memory.optimizer.value, 12 * 126);
}

TEST(SchedulePoints, InterleavedPeakHoldsTheExactCounts) {
  int most = 0;
  for (const SchedulePoint& point : schedule_points(ScheduleKind::interleaved, 4, 0, 2, 64)) {
    int running = 1;
    for (const int alive : point.alive) running += alive;
    most = std::max(most, running);
  }
  EXPECT_EQ(most, 11);
}

TEST(PredictMemory, SingleDeviceSumsStatesLayersAndLoss) {
  Plan plan = llama3_8b(8192);
  plan.hardware.device.is_cpu = true;
  plan.gradients.stored = NumberFormat::bf16;
  const StageProfile stage = predict_memory(plan).at(0);
  const std::int64_t parameters = 8030261248;
  EXPECT_EQ(stage.memory.parameters.value, 2 * parameters);
  EXPECT_EQ(stage.memory.gradients.value, 2 * parameters);
  EXPECT_EQ(stage.memory.optimizer.value, 12 * parameters);
  // The peak is in the backward of the head's product: tokens, 32 layers (34.0 GiB), the head's norm with its
  // statistic, and the bf16 logits that their gradient has overwritten; targets and row sums are gone.
  const std::int64_t head = 8192LL * (2 * 2 * 4096 + 4) + 2 * 8192LL * 128256;
  EXPECT_EQ(stage.memory.activations.value, 8 * 8192 + 32 * 139400LL * 8192 + head);
  EXPECT_EQ(stage.memory.peak_allocated, stage.memory.parameters + stage.memory.gradients + stage.memory.optimizer +
                                             stage.memory.activations + stage.memory.transient);
  // The head's weights have their gradients made in FP32 before they are rounded to the stored ones.
  const std::int64_t made = 4 * (128256LL * 4096 + 4096);
  EXPECT_GE(stage.memory.transient.value, made);
  EXPECT_LT(stage.memory.transient.value, made + 8192LL * 4096 * 2 * 4 + 4 * 8192 * 129);  // and the rotations
}

// First stage of 1F1B holds four micro-batches of its ten layers, the last one; the table sits on the first.
TEST(PredictMemory, StagesHoldTheirMicroBatchesInFlight) {
  Plan plan = on_gpu(llama2_13b(4096));
  plan.parallel.pipeline = 4;
  plan.batch.global_batch = 16;
  const auto stages = predict_memory(plan);
  ASSERT_EQ(stages.size(), 4u);
  const std::int64_t layer = 4096LL * (8 * 5120 + 8 * 5120 + 6 * 13824 + 4 * 40 + 8);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(stages[i].layers, 10);
    EXPECT_DOUBLE_EQ(stages[i].in_flight, 4.0 - static_cast<double>(i));
  }
  EXPECT_EQ(stages[1].memory.activations.value / (10 * layer), 2);  // 3 less what the running backward has freed
  EXPECT_GE(stages[1].memory.activations.value, 3 * 10 * layer - layer);
  EXPECT_GT(stages[0].memory.parameters, stages[1].memory.parameters);
  EXPECT_EQ(stages[0].memory.parameters - stages[1].memory.parameters, Bytes(2 * 32000LL * 5120));
}

TEST(PredictMemory, InterleavingHoldsMoreThanPlainOneForwardOneBackward) {
  Plan plan = on_gpu(llama2_13b(4096));
  plan.parallel.pipeline = 4;
  plan.batch.global_batch = 8;
  const Bytes plain = predict_memory(plan)[0].memory.activations;
  plan.parallel.schedule = ScheduleKind::interleaved;
  plan.parallel.chunks = 2;
  const StageProfile interleaved = predict_memory(plan)[0];
  EXPECT_DOUBLE_EQ(interleaved.in_flight, 5.5);
  EXPECT_NEAR(interleaved.memory.activations / plain, 5.5 / 4, 0.02);
}

TEST(PredictMemory, TiedTableLiesOnBothEnds) {
  Plan plan = on_gpu(gpt(64));
  plan.parallel.pipeline = 2;
  plan.batch.global_batch = 4;
  const auto stages = predict_memory(plan);
  const std::int64_t layer = 4LL * 64 * 64 + 4 * 64 + 2LL * 64 * 256 + 256 + 64 + 4 * 64;
  EXPECT_EQ(stages[0].memory.parameters.value, 2 * (layer + 100 * 64 + 64 * 64));  // token and position tables
  EXPECT_EQ(stages[1].memory.parameters.value, 2 * (layer + 2 * 64 + 100 * 64));   // final norm, the table again
}

// AGoQ's ablation, LLaMA2-13B, 12K tokens, tensor 8 with sequence parallelism on one node: 46.1 GB with Megatron-LM's
// unfused 28U stack and fp32 gradients, 22.3 GB with AGoQ's. The stacks keep other tensors than this project's op list,
// so their published count stands for the layers; everything else is predicted. 10 %: the bar.
TEST(PredictMemory, AgoqAblationIsWithinTenPercent) {
  Plan plan = on_gpu(llama2_13b(12288));
  plan.parallel.tensor = 8;
  plan.parallel.sequence = true;
  const auto total = [&](double units) {
    const StageMemory m = predict_memory(plan)[0].memory;
    const Bytes beside = m.parameters + m.gradients + m.optimizer + m.transient + m.communicators + m.context;
    return static_cast<double>(beside.value) / 1e9 + 40 * units * 12288.0 * 5120 * 2 / 8 / 1e9;
  };
  EXPECT_NEAR(total(layer_units(ActivationStack::megatron_unfused, 4, 1).sum()), 46.1, 4.61);
  plan.gradients.stored = NumberFormat::fp8_e4m3;
  plan.optimizer.states = NumberFormat::int8;
  EXPECT_NEAR(total(layer_units(ActivationStack::agoq, 4, 1).sum()), 22.3, 2.23);
}

TEST(PredictMemory, ShardedParametersAreGatheredTwoSectionsAtATime) {
  Plan plan = on_gpu(llama3_8b(1024));
  plan.parallel.data = 8;
  plan.batch.global_batch = 8;
  plan.parallel.zero = 1;
  const StageMemory one = predict_memory(plan)[0].memory;
  plan.parallel.zero = 3;
  const StageMemory three = predict_memory(plan)[0].memory;
  EXPECT_EQ(three.parameters.value, 2 * 8030261248 / 8);
  // Head or layer with the neighbour's weights in bf16, and the whole fp32 gradients of both: the layer's is filled
  // while the head's is on its way to the shards.
  const std::int64_t layer = 2LL * 4096 * 4096 + 2LL * 4096 * 1024 + 3LL * 4096 * 14336 + 2 * 4096;
  const std::int64_t head = 128256LL * 4096 + 4096;
  EXPECT_GE((three.transient - one.transient).value, 2 * (layer + layer));
  EXPECT_LE((three.transient - one.transient).value, 2 * (head + layer) + 4 * (head + layer));
  EXPECT_LT(three.peak_allocated, one.peak_allocated);
}

TEST(PredictMemory, ReplayOfTheAllocationSequenceFindsTheSamePeak) {
  std::mt19937 random(11);
  const NumberFormat formats[] = {NumberFormat::bf16, NumberFormat::int8, NumberFormat::nf4};
  int compared = 0;
  for (int trial = 0; trial < 150; ++trial) {
    const Plan base[] = {llama3_8b(256), gpt(64), small_moe(), small_mla()};
    Plan plan = on_gpu(base[random() % 4]);
    plan.model.layers = 8;
    const bool interleaved = random() % 2;
    plan.parallel.pipeline = 1 << random() % 3;
    plan.parallel.schedule = interleaved ? ScheduleKind::interleaved : static_cast<ScheduleKind>(random() % 2);
    plan.parallel.chunks = interleaved ? 2 : 1;
    plan.parallel.tensor = plan.model.is_moe() || plan.model.is_mla() ? 1 : 1 << random() % 2;
    plan.parallel.sequence = random() % 2;
    plan.parallel.data = 2;
    plan.parallel.zero = static_cast<int>(random() % 4);
    plan.batch.global_batch = 2 * plan.parallel.pipeline * (1 + static_cast<std::int64_t>(random() % 3));
    plan.activations.stored = formats[random() % 3];
    plan.activations.recompute = static_cast<Recompute>(random() % 4);
    plan.activations.recompute_layers = {static_cast<std::int64_t>(random() % 5)};
    for (const StageProfile& stage : predict_memory(plan)) {
      const auto sequence = allocation_sequence(plan, single_document_work(plan), stage.stage);
      EXPECT_EQ(peak_allocated(sequence), stage.memory.peak_allocated)
          << plan.model.name << " stage " << stage.stage << " of " << plan.parallel.pipeline << " zero "
          << plan.parallel.zero << " chunks " << plan.parallel.chunks;
      EXPECT_GE(stage.memory.allocator_slack.value, 0);
      ++compared;
    }
  }
  EXPECT_GT(compared, 150);
}

TEST(MemoryVerdict, NamesTheComponentThatCrossesTheLimit) {
  Plan plan = on_gpu(llama3_8b(8192));
  const StageMemory memory = predict_memory(plan)[0].memory;
  const auto breaks = [&](Bytes limit) {
    plan.memory.limit = limit;
    return memory_verdict(plan, predict_memory(plan)).breaks.value_or("none");
  };
  EXPECT_EQ(breaks(memory.parameters - Bytes(1)), "parameters");
  EXPECT_EQ(breaks(memory.parameters + memory.gradients - Bytes(1)), "gradients");
  EXPECT_EQ(breaks(memory.parameters + memory.gradients + memory.optimizer - Bytes(1)), "optimizer");
  EXPECT_EQ(breaks(memory.parameters + memory.gradients + memory.optimizer + memory.activations / 2), "activations");
  EXPECT_EQ(breaks(memory.peak_allocated), "allocator_slack");
  EXPECT_EQ(breaks(memory.peak_allocated + memory.allocator_slack + memory.communicators), "none");
}

TEST(FewestRecomputedLayers, IsTheFirstCountThatFits) {
  Plan plan = on_gpu(llama2_13b(32768));
  plan.hardware = gpu(48);
  plan.parallel.pipeline = 4;
  plan.parallel.tensor = 8;
  plan.parallel.sequence = true;
  plan.parallel.data = 2;
  plan.batch.global_batch = 16;
  plan.activations.recompute = Recompute::full;
  for (const std::int64_t length : {32768, 65536, 98304, 131072}) {
    plan.batch.sequence_length = length;
    const auto fewest = fewest_recomputed_layers(plan);
    for (std::size_t stage = 0; stage < 4; ++stage) {
      plan.activations.recompute_layers = fewest;
      const Bytes limit = memory_limit(plan);
      if (fewest[stage] < 10) {
        EXPECT_LE(memory_need(plan, predict_memory(plan)[stage].memory), limit);
      }
      if (fewest[stage] == 0) continue;
      --plan.activations.recompute_layers[stage];
      EXPECT_GT(memory_need(plan, predict_memory(plan)[stage].memory), limit) << length << " stage " << stage;
    }
    EXPECT_TRUE(std::is_sorted(fewest.rbegin(), fewest.rend()));
  }
}

TEST(AutomaticBits, FollowTheScheduleOfThePaper) {
  Plan plan = on_gpu(llama2_13b(4096));
  plan.parallel.pipeline = 4;
  plan.parallel.schedule = ScheduleKind::interleaved;
  plan.parallel.chunks = 2;
  plan.batch.global_batch = 8;
  EXPECT_TRUE(automatic_bits(plan).empty());
  plan.activations.stored = NumberFormat::nf4;
  EXPECT_EQ(automatic_bits(plan), (std::vector<int>{4, 5, 6, 8}));
}

/// A random legal plan on 2^n devices.
Plan random_plan(std::mt19937& random) {
  const auto power = [&](int most) { return std::int64_t{1} << random() % static_cast<unsigned>(most + 1); };
  const Plan bases[] = {llama3_8b(4096), llama2_13b(8192), gpt(1024), small_moe(), small_mla()};
  Plan plan = on_gpu(bases[random() % 5]);
  plan.model.layers = 16;
  const bool small = plan.model.hidden < 100;
  plan.parallel.tensor = plan.model.is_moe() ? power(1) : power(small ? 2 : 3);
  plan.parallel.sequence = random() % 2;
  plan.parallel.ulysses = plan.parallel.tensor > 1 ? 1 : power(1);
  plan.parallel.ring = power(2);
  plan.parallel.data = plan.model.is_moe() ? 2 : power(3);
  plan.parallel.pipeline = power(3);
  plan.parallel.schedule = static_cast<ScheduleKind>(random() % 3);
  plan.parallel.chunks = plan.parallel.schedule == ScheduleKind::interleaved ? 2 : 1;
  plan.batch.micro_batch = power(2);
  plan.batch.global_batch = plan.batch.micro_batch * plan.parallel.data * plan.parallel.pipeline * power(3);
  plan.parallel.zero = static_cast<int>(random() % 4);
  plan.activations.recompute = static_cast<Recompute>(random() % 4);
  plan.activations.recompute_layers = {static_cast<std::int64_t>(random() % 17)};
  const NumberFormat formats[] = {NumberFormat::bf16, NumberFormat::int8, NumberFormat::nf4, NumberFormat::uint4};
  plan.activations.stored = formats[random() % 4];
  plan.kernels.loss = static_cast<LossKernel>(random() % 3);
  return plan;
}

struct Sums {
  Bytes states, activations, allocated;
};

Sums worst(const Plan& plan) {
  Sums sums;
  for (const StageProfile& stage : predict_memory(plan)) {
    const StageMemory& m = stage.memory;
    for (const Bytes part : {m.parameters, m.gradients, m.optimizer, m.activations, m.transient, m.communication,
                             m.allocator_slack, m.communicators, m.context})
      EXPECT_GE(part.value, 0);
    EXPECT_EQ(m.peak_allocated,
              m.parameters + m.gradients + m.optimizer + m.activations + m.transient + m.communication);
    EXPECT_EQ(m.device_used, m.peak_allocated + m.allocator_slack + m.communicators + m.context);
    sums.states = std::max(sums.states, m.parameters + m.gradients + m.optimizer);
    sums.activations = std::max(sums.activations, m.activations);
    sums.allocated = std::max(sums.allocated, m.peak_allocated);
  }
  return sums;
}

TEST(PredictMemory, IsMonotoneOnRandomPlans) {
  std::mt19937 random(2026);
  for (int trial = 0; trial < 3000; ++trial) {  // three to four plans each
    Plan plan = random_plan(random);
    plan.hardware.device.is_cpu = true;  // no replay: ten times faster
    const Sums base = worst(plan);
    Plan more_zero = plan;
    if (more_zero.parallel.zero < 3) {
      ++more_zero.parallel.zero;
      const std::int64_t padding = 18 * 2 * more_zero.parallel.data * more_zero.context();
      EXPECT_LE(worst(more_zero).states.value, base.states.value + padding);
    }
    Plan more_recompute = plan;
    if (plan.activations.recompute == Recompute::full && !is_block_scaled(plan.activations.stored)) {
      ++more_recompute.activations.recompute_layers[0];
      EXPECT_LE(worst(more_recompute).activations, base.activations);
    }
    Plan fewer_bits = plan;
    if (is_block_scaled(plan.activations.stored)) {
      plan.activations.bits_by_stage = {8};
      fewer_bits.activations.bits_by_stage = {4};
      EXPECT_LE(worst(fewer_bits).activations, worst(plan).activations);
    }
  }
}

}  // namespace
}  // namespace reckon
