// Activation policies executed: gradients of recomputed and of encoded tensors against those of tensors kept as they
// are, and counted bytes against predicted ones.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <random>

#include "cost_model/memory.h"
#include "cost_model/predict.h"
#include "plan/choices.h"
#include "tests/train/counted_memory.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::by_name;
using testing::count_stages;
using testing::Counted;
using testing::of;
using testing::on_ranks;
using testing::small_plan;

using Gradients = std::map<std::string, at::Tensor>;

/// Classes that a LLaMA layer and head have.
const std::vector<ActivationClass> kClasses = {ActivationClass::norm_input,
                                               ActivationClass::qkv_input,
                                               ActivationClass::query,
                                               ActivationClass::key,
                                               ActivationClass::value,
                                               ActivationClass::attention_output,
                                               ActivationClass::projection_input,
                                               ActivationClass::ffn_input,
                                               ActivationClass::gate,
                                               ActivationClass::up,
                                               ActivationClass::down_input,
                                               ActivationClass::head_input};

/// Gradients of one step of rank 0's stage, all stages' by name.
Gradients gradients_of(const Plan& plan) {
  Gradients all;
  std::mutex mutex;
  on_ranks(plan, [&](RankTrainer& trainer, int, MemoryAccount&) {
    trainer.forward_backward(3);
    const Gradients own = by_name(trainer.parameters(), trainer.parameters().gradients());
    const std::lock_guard lock(mutex);
    if (trainer.groups().coordinates.tensor == 0 && trainer.groups().coordinates.data == 0)
      all.insert(own.begin(), own.end());
  });
  return all;
}

/// The gradients with other random numbers in the rounding, but the tokens and weights of the plan's own seed.
Gradients redrawn(const Plan& plan, std::uint64_t seed) {
  at::Tensor weights;
  on_ranks(plan, [&](RankTrainer& trainer, int, MemoryAccount&) { weights = trainer.parameters().weights().clone(); });
  Gradients sample;
  const TokenStream tokens(plan);
  Plan other = plan;
  other.train.seed = seed;
  run_ranks_as_threads(1, {}, [&](Communicator& world) {
    MemoryAccount& account = *new MemoryAccount;  // never destroyed: tensors outlive this
    const RankScope scope(account);
    RankTrainer trainer(other, world, tokens);
    trainer.parameters().weights().copy_(weights);
    trainer.forward_backward(3);
    sample = by_name(trainer.parameters(), trainer.parameters().gradients());
  });
  return sample;
}

double relative_error(const Gradients& a, const Gradients& reference) {
  double difference = 0, norm = 0;
  for (const auto& [name, gradient] : reference) {
    difference += (a.at(name) - gradient).square().sum().item<double>();
    norm += gradient.square().sum().item<double>();
  }
  return std::sqrt(difference / norm);
}

void expect_same_bits(const Gradients& a, const Gradients& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, gradient] : a) EXPECT_TRUE(at::equal(gradient, b.at(name))) << what << ": " << name;
}

std::string text_of(const ActivationSpec& activations) {
  std::string text = fmt::format("stored {}, block {}, scale {}, recompute {}", name_of(activations.stored),
                                 activations.block, name_of(activations.scale), name_of(activations.recompute));
  for (const auto& [one, policies] : activations.classes_by_stage)
    for (const ClassPolicy& policy : policies)
      text += fmt::format(", {}: {}", name_of(one), policy.recompute ? "recompute" : name_of(policy.format));
  for (const auto& [one, policy] : activations.classes)
    text += fmt::format(", {}: {}", name_of(one), policy.recompute ? "recompute" : name_of(policy.format));
  return text;
}

/// AGoQ's policy without its gradients and optimizer, which are other keys.
void set_agoq(Plan& plan) {
  plan.activations.stored = NumberFormat::fp4_e2m1;
  for (const ActivationClass wide : {ActivationClass::query, ActivationClass::key, ActivationClass::value,
                                     ActivationClass::attention_output, ActivationClass::head_input})
    plan.activations.classes[wide] = {false, plan.precision.compute};
  for (const ActivationClass again :
       {ActivationClass::qkv_input, ActivationClass::ffn_input, ActivationClass::down_input})
    plan.activations.classes[again] = {true, NumberFormat::bf16};
}

TEST(StoredActivations, RecomputingAnyClassesGivesTheBitsOfKeepingThem) {
  std::mt19937 random(7);
  for (const NumberFormat compute : {NumberFormat::fp32, NumberFormat::bf16}) {
    Plan plan = small_plan();
    plan.precision.compute = plan.activations.stored = compute;
    const Gradients kept = gradients_of(plan);
    for (int trial = 0; trial < 12; ++trial) {
      Plan again = plan;
      for (const ActivationClass one : kClasses)
        if (random() % 2 == 0) again.activations.classes[one].recompute = true;
        else again.activations.classes[one] = {false, compute};
      expect_same_bits(gradients_of(again), kept, text_of(again.activations));
    }
  }
}

TEST(StoredActivations, RecomputingEveryClassWithTensorParallelismGivesTheSameBits) {
  Plan plan = small_plan();
  plan.parallel.tensor = 2;
  for (const bool sequence : {false, true}) {
    plan.parallel.sequence = sequence;
    plan.activations.classes.clear();
    const Gradients kept = gradients_of(plan);
    for (const ActivationClass one : kClasses) plan.activations.classes[one].recompute = true;
    expect_same_bits(gradients_of(plan), kept, sequence ? "sequence" : "tensor");
  }
}

// A value is at most half a step off its block's grid, so each bit more halves the error; 8 bits on normal numbers have
// 0.6 % (a block of 128 has its largest at 2.7 deviations: step 2.7 / 127, error step / sqrt(12)). Products and sums
// pass relative errors on, so the gradient's is of that size, not exactly it.
TEST(StoredActivations, GradientErrorFallsWithTheBits) {
  Plan plan = small_plan();
  plan.batch = {24, 2, 4};
  const Gradients kept = gradients_of(plan);
  double before = 1.0;
  for (const NumberFormat format : {NumberFormat::int3, NumberFormat::int4, NumberFormat::int5, NumberFormat::int6,
                                    NumberFormat::int7, NumberFormat::int8}) {
    plan.activations.stored = format;
    const double error = relative_error(gradients_of(plan), kept);
    EXPECT_LT(error, 0.75 * before) << name_of(format);
    EXPECT_GT(error, 0.0);
    before = error;
  }
  EXPECT_LT(before, 0.03);
}

TEST(StoredActivations, EveryFormatBlockAndRoundingTrains) {
  Plan plan = small_plan();
  plan.precision.compute = NumberFormat::bf16;
  plan.activations.stored = NumberFormat::bf16;
  const Gradients kept = gradients_of(plan);
  for (const NumberFormat format : all_number_formats()) {
    if (!is_block_scaled(format)) continue;
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::stochastic}) {
      plan.activations.stored = format;
      plan.activations.block = 32;
      plan.activations.rounding = rounding;
      // Two bits have one level on each side of zero: such a gradient is hardly more than a direction.
      EXPECT_LT(relative_error(gradients_of(plan), kept), payload_bits(format) > 3 ? 0.5 : 2.0)
          << name_of(format) << " " << name_of(rounding);
    }
  }
}

TEST(StoredActivations, AFormatWiderThanItIsComputedInChangesNothing) {
  Plan plan = small_plan();
  const Gradients kept = gradients_of(plan);
  for (const ActivationClass one : kClasses) plan.activations.classes[one] = {false, NumberFormat::fp32};
  expect_same_bits(gradients_of(plan), kept, "fp32");
  for (const ActivationClass one : kClasses) plan.activations.classes[one] = {false, NumberFormat::bf16};
  const double error = relative_error(gradients_of(plan), kept);  // fp32 kept as bf16: 8 significant bits
  EXPECT_GT(error, 0.0);
  EXPECT_LT(error, 0.01);
}

TEST(StoredActivations, StochasticRoundingRepeatsWithTheSeedAndAveragesOut) {
  Plan plan = small_plan();
  plan.batch = {24, 2, 4};
  const Gradients kept = gradients_of(plan);
  for (const ActivationClass one :
       {ActivationClass::qkv_input, ActivationClass::down_input, ActivationClass::head_input})
    plan.activations.classes[one] = {false, NumberFormat::int4};
  plan.activations.rounding = Rounding::stochastic;
  expect_same_bits(gradients_of(plan), gradients_of(plan), "the same step twice");
  // These classes are read by products whose gradient is linear in them, so the mean over draws is the gradient itself:
  // with 40 draws the error of the mean is 1 / sqrt(40) = 0.16 of one draw's.
  constexpr int kDraws = 40;
  Gradients mean;
  double one_draw = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Gradients sample = redrawn(plan, static_cast<std::uint64_t>(1000 + draw));
    one_draw += relative_error(sample, kept) / kDraws;
    for (const auto& [name, gradient] : sample)
      mean[name] = mean.contains(name) ? mean[name] + gradient / kDraws : gradient / kDraws;
  }
  EXPECT_LT(relative_error(mean, kept), 0.25 * one_draw);
}

// --- bytes --------------------------------------------------------------------------------------------------------

/// Large enough that what the model keeps outweighs the attention kernel's scratch.
Plan memory_plan() {
  Plan plan = small_plan();
  plan.model.hidden = 128;
  plan.model.ffn_hidden = 352;
  plan.model.heads = 4;
  plan.model.head_dim = 32;
  plan.model.layers = 4;
  plan.model.vocabulary = 999;
  plan.batch = {128, 2, 8};
  return plan;
}

/// Activations, transients and peak of every stage, to the byte. Messages on their way to a neighbour are counted
/// apart: how many there are depends on how far a rank runs ahead.
void expect_predicted(const Plan& asked) {
  const Plan plan = resolve(asked);
  const std::string what = text_of(plan.activations);
  const std::vector<Counted> stages = count_stages(plan);
  const std::vector<StageProfile> predictions = predict_memory(plan);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const Counted& counted = stages[stage];
    const StageMemory& predicted = predictions.at(stage).memory;
    const std::string where = fmt::format("{}, stage {}", what, stage);
    const std::int64_t on_the_way = of(counted.at_peak, MemoryCategory::communication);
    EXPECT_EQ(of(counted.at_peak, MemoryCategory::activations), predicted.activations.value) << where;
    EXPECT_EQ(of(counted.at_peak, MemoryCategory::transient), predicted.transient.value) << where;
    EXPECT_EQ(counted.peak.value - on_the_way, (predicted.peak_allocated - predicted.communication).value) << where;
    EXPECT_LE(on_the_way, predicted.communication.value) << where;
    EXPECT_EQ(of(counted.after_step, MemoryCategory::activations), 0) << where;
  }
}

TEST(StoredActivationBytes, OfAgoqAreThePredictedOnesUnderEverySchedule) {
  struct Case {
    std::int64_t pipeline, tensor, chunks;
    bool sequence;
    ScheduleKind schedule;
    std::vector<std::int64_t> layers;
  };
  for (const Case& c :
       {Case{1, 1, 1, false, ScheduleKind::gpipe, {}}, Case{1, 2, 1, false, ScheduleKind::one_forward_one_backward, {}},
        Case{2, 2, 1, true, ScheduleKind::one_forward_one_backward, {}}, Case{2, 1, 1, false, ScheduleKind::gpipe, {}},
        Case{2, 1, 2, false, ScheduleKind::interleaved, {}},
        Case{2, 1, 1, false, ScheduleKind::one_forward_one_backward, {3, 1}}}) {
    Plan plan = memory_plan();
    set_agoq(plan);
    plan.parallel.pipeline = c.pipeline;
    plan.parallel.tensor = c.tensor;
    plan.parallel.chunks = c.chunks;
    plan.parallel.sequence = c.sequence;
    plan.parallel.schedule = c.schedule;
    plan.parallel.layers_per_stage = c.layers;
    expect_predicted(plan);
  }
}

TEST(StoredActivationBytes, OfEveryRecomputeModeAreThePredictedOnes) {
  for (const Recompute mode : {Recompute::none, Recompute::elementwise, Recompute::selective, Recompute::full})
    for (const bool agoq : {false, true}) {
      Plan plan = memory_plan();
      if (agoq) set_agoq(plan);
      plan.parallel.pipeline = 2;
      plan.activations.recompute = mode;
      plan.activations.recompute_layers = {1, 2};
      expect_predicted(plan);
    }
}

// Any mix of keeping, widths and recomputing by class and by stage.
TEST(StoredActivationBytes, OfTenRandomPoliciesAreThePredictedOnesAtEveryStage) {
  const std::vector<NumberFormat> formats = {
      NumberFormat::fp32, NumberFormat::bf16,     NumberFormat::fp8_e4m3, NumberFormat::int8,  NumberFormat::int6,
      NumberFormat::int5, NumberFormat::fp4_e2m1, NumberFormat::nf4,      NumberFormat::nvfp4, NumberFormat::uint3};
  std::mt19937 random(11);
  for (int trial = 0; trial < 10; ++trial) {
    Plan plan = memory_plan();
    plan.parallel.pipeline = 2;
    plan.parallel.tensor = 1 + trial % 2;
    plan.parallel.sequence = trial % 4 == 1;
    plan.activations.block = 16 << random() % 5;
    plan.activations.scale = random() % 2 == 0 ? ScaleFormat::fp32 : ScaleFormat::bf16;
    for (const ActivationClass one : kClasses)
      for (int stage = 0; stage < 2; ++stage) {
        const bool recompute = random() % 3 == 0;
        plan.activations.classes_by_stage[one].push_back({recompute, formats[random() % formats.size()]});
      }
    expect_predicted(plan);
  }
}

// Recomputation repeats the collectives of the ops that it runs again; storing in fewer bits sends nothing.
TEST(StoredActivationBytes, TrafficIsThePredictedOne) {
  Plan plan = memory_plan();
  plan.parallel.tensor = 2;
  plan.parallel.sequence = true;
  std::map<std::string, std::int64_t> kept, stored;
  for (auto* counts : {&kept, &stored}) {
    on_ranks(plan, [&](RankTrainer& trainer, int rank, MemoryAccount&) {
      for (GroupCalls* group : trainer.groups().all()) group->communicator().reset_traffic();
      trainer.step(0);
      if (rank != 0) return;
      for (GroupCalls* group : trainer.groups().all())
        for (const TrafficCount& count : group->communicator().traffic())
          (*counts)[group->communicator().name() + "." + count.collective] += std::llround(count.bytes_per_rank);
    });
    set_agoq(plan);
  }
  EXPECT_EQ(stored, kept);
}

}  // namespace
}  // namespace reckon
