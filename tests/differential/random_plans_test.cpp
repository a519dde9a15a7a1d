// What holds for every plan: it is either refused with reasons or predicted in finite numbers that add up, and what is
// meant to save memory does.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "cost_model/in_parallel.h"
#include "cost_model/predict.h"
#include "cost_model/stage_states.h"
#include "plan/kept_tensors.h"
#include "plan/pipeline_schedule.h"
#include "plan/stage_sections.h"
#include "plan/step_documents.h"
#include "tests/support/wild_plan.h"

namespace reckon {
namespace {

constexpr std::size_t kPlans = 10'000;

/// Calls check(plan, legal) for every plan, on all cores. Plan i depends on i alone.
template <class Check>
void for_random_plans(Check check) {
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  in_parallel(kPlans, threads, [&](std::size_t i, int) {
    std::mt19937_64 random(i);
    const Plan plan = WildDice(random).roll();
    SCOPED_TRACE(testing::Message() << "plan " << i);
    check(plan, check_plan(plan));
  });
}

void expect_amount(const char* what, double value) {
  EXPECT_TRUE(std::isfinite(value)) << what << " is " << value;
  EXPECT_GE(value, 0.0) << what;
}

void expect_step(const StepProfile& profile) {
  const StepSummary& step = profile.step;
  EXPECT_GT(step.seconds.value, 0.0);
  for (const double amount : {step.seconds.value, step.tokens_per_second_per_device, step.model_flops.value, step.mfu,
                              step.hfu, step.useful_tokens_per_second_per_device})
    expect_amount("a part of the step", amount);
  EXPECT_LE(step.interval_low, step.seconds);
  EXPECT_LE(step.seconds, step.interval_high);
  expect_amount("bubble", step.bubble_fraction);
  EXPECT_LT(step.bubble_fraction, 1.0);
  double exposed = 0;
  for (const TimeComponent& component : profile.time) {
    expect_amount(component.component.c_str(), component.seconds.value);
    exposed += component.exposed_seconds.value;
  }
  EXPECT_NEAR(exposed, step.seconds.value, 1e-9 * step.seconds.value);
  for (const TrafficEntry& entry : profile.traffic) {
    expect_amount(entry.group.c_str(), static_cast<double>(entry.calls));
    expect_amount(entry.group.c_str(), static_cast<double>(entry.bytes_per_rank));
  }
}

void expect_memory(const StepProfile& profile) {
  for (const StageProfile& stage : profile.stages) {
    const StageMemory& m = stage.memory;
    for (const Bytes part : {m.parameters, m.gradients, m.optimizer, m.activations, m.transient, m.communication,
                             m.allocator_slack, m.communicators, m.context})
      EXPECT_GE(part.value, 0) << "stage " << stage.stage;
    EXPECT_EQ(m.parameters + m.gradients + m.optimizer + m.activations + m.transient + m.communication,
              m.peak_allocated);
    EXPECT_EQ(m.peak_allocated + m.allocator_slack + m.communicators + m.context, m.device_used);
  }
  const Verdict& verdict = profile.verdict;
  expect_amount("probability", verdict.probability);
  EXPECT_LE(verdict.probability, 1.0);
  EXPECT_EQ(verdict.fits, verdict.need <= verdict.limit);
  EXPECT_EQ(verdict.fits, !verdict.breaks.has_value());
  EXPECT_NE(verdict.breaks.value_or("nothing"), "");
}

TEST(RandomPlans, ArePredictedInFiniteNumbersThatAddUpOrRefusedWithReasons) {
  std::atomic<int> legal = 0, too_large = 0;
  for_random_plans([&](const Plan& plan, const std::vector<Diagnostic>& broken) {
    for (const Diagnostic& rule : broken) {
      EXPECT_GT(rule.message.size(), 10u);
      EXPECT_FALSE(rule.key.empty()) << rule.message;
    }
    if (!broken.empty()) return;
    ++legal;
    const StepProfile profile = predict(resolve(plan));
    expect_step(profile);
    expect_memory(profile);
    too_large += profile.verdict.fits ? 0 : 1;
  });
  EXPECT_GT(legal, static_cast<int>(kPlans) / 3);
  EXPECT_LT(legal, static_cast<int>(kPlans) * 4 / 5);
  EXPECT_GT(too_large, 100);
}

TEST(RandomPlans, MoreShardingNeverNeedsMoreStates) {
  for_random_plans([](Plan plan, const std::vector<Diagnostic>& broken) {
    if (!broken.empty()) return;
    plan = resolve(plan);
    const std::int64_t stage = plan.parallel.pipeline / 2;
    plan.parallel.zero_group = 0;
    plan.parallel.zero = 0;
    Bytes before = stage_states(plan, stage).total();
    for (plan.parallel.zero = 1; plan.parallel.zero <= 3; ++plan.parallel.zero) {
      const Bytes states = stage_states(plan, stage).total();
      EXPECT_LE(states, before) << "ZeRO-" << plan.parallel.zero;
      before = states;
    }
  });
}

/// What one micro-batch keeps on a stage whose first `recomputed` layers are recomputed in `mode`.
Bytes kept_bytes(Plan plan, std::int64_t stage, Recompute mode, std::int64_t recomputed) {
  plan.activations.recompute = mode;
  plan.activations.recompute_layers = {recomputed};
  const AttentionWork work = single_document_work(plan);
  Bytes sum;
  for (const ChunkSections& chunk : stage_sections(plan, stage))
    for (const SectionRun& run : runs_of(chunk)) {
      const OpList list = section_ops(plan, run.section.kind, work);
      const Recompute treatment = run.section.recomputed ? mode : Recompute::none;
      sum += run.count * kept_tensors(plan, list, treatment, static_cast<int>(stage)).bytes();
    }
  return sum;
}

TEST(RandomPlans, MoreRecomputationNeverKeepsMore) {
  for_random_plans([](Plan plan, const std::vector<Diagnostic>& broken) {
    if (!broken.empty()) return;
    plan.parallel.layers_per_stage = layers_per_virtual_stage(plan);
    const std::int64_t stage = plan.parallel.pipeline - 1, layers = stage_layers(plan, stage);
    const Bytes all = kept_bytes(plan, stage, Recompute::none, 0);
    for (const Recompute mode : {Recompute::elementwise, Recompute::selective, Recompute::full}) {
      Bytes before = all;
      for (const std::int64_t count : {std::min<std::int64_t>(1, layers), layers}) {
        const Bytes kept = kept_bytes(plan, stage, mode, count);
        EXPECT_LE(kept, before) << count << " layers in mode " << static_cast<int>(mode);
        before = kept;
      }
    }
    EXPECT_LE(kept_bytes(plan, stage, Recompute::full, layers),
              kept_bytes(plan, stage, Recompute::elementwise, layers));
    EXPECT_LE(kept_bytes(plan, stage, Recompute::full, layers), kept_bytes(plan, stage, Recompute::selective, layers));
  });
}

TEST(RandomPlans, FewerBitsNeverKeepMore) {
  for_random_plans([](Plan plan, const std::vector<Diagnostic>& broken) {
    if (!broken.empty()) return;
    ActivationSpec& activations = plan.activations;
    activations.scale = ScaleFormat::bf16;  // which every format may have
    const std::int64_t stage = plan.parallel.pipeline - 1;
    activations.bits_by_stage.clear();
    activations.stored = tensor_format(plan);
    Bytes before = kept_bytes(plan, stage, activations.recompute, 1);
    activations.stored = NumberFormat::int8;
    for (const int bits : {8, 7, 6, 5, 4, 3, 2}) {
      activations.bits_by_stage.assign(static_cast<std::size_t>(plan.parallel.pipeline), bits);
      const Bytes kept = kept_bytes(plan, stage, activations.recompute, 1);
      EXPECT_LE(kept, before) << bits << " bits";
      before = kept;
    }
  });
}

}  // namespace
}  // namespace reckon
