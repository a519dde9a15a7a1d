#include "cost_model/budget_solver.h"

#include <gtest/gtest.h>

#include <random>

#include "cost_model/gradient_error.h"
#include "cost_model/memory.h"
#include "cost_model/predict.h"
#include "plan/load_plan.h"

namespace reckon {
namespace {

/// LLaMA2-13B's proportions at a sixteenth of its width, pipeline 4 x tensor 2, on processors, so that memory is what
/// ranks allocate.
Plan small_13b(std::int64_t length) {
  Plan plan;
  ModelSpec& model = plan.model;
  model.name = "small-13b";
  model.layers = 16;
  model.hidden = 320;
  model.ffn_hidden = 864;
  model.heads = model.kv_heads = 10;
  model.head_dim = 32;
  model.vocabulary = 2000;
  DeviceSpec& device = plan.hardware.device;
  device.is_cpu = true;
  device.memory = Bytes(std::int64_t{8} << 30);
  device.memory_bandwidth = BytesPerSecond(10e9);
  device.peak[NumberFormat::fp32] = FlopsPerSecond(50e9);
  device.peak[NumberFormat::bf16] = FlopsPerSecond(100e9);
  plan.hardware.devices_per_node = 8;
  plan.hardware.intra_node.bandwidth = plan.hardware.inter_node.bandwidth = BytesPerSecond(5e9);
  plan.batch = {length, 1, 8};
  plan.parallel.pipeline = 4;
  plan.parallel.tensor = 2;
  plan.parallel.sequence = true;
  return plan;
}

Plan asked(Plan plan, double limit_share, double weight) {
  const Plan kept = resolve(plan);
  Bytes most;
  for (const StageProfile& stage : predict_memory(kept)) most = std::max(most, stage.memory.peak_allocated);
  plan.memory.limit = Bytes(static_cast<std::int64_t>(limit_share * static_cast<double>(most.value)));
  plan.activations.error_weight = weight;
  plan = resolve(plan);
  plan.activations.method = ActivationMethod::optimal;
  return plan;
}

TEST(GradientError, OfAgoqIsTheSumOfItsClasses) {
  Plan plan = small_13b(512);
  plan.activations.stored = NumberFormat::fp4_e2m1;
  plan.activations.bits_by_stage = {4, 4, 4, 4};
  for (const ActivationClass wide : {ActivationClass::query, ActivationClass::key, ActivationClass::value,
                                     ActivationClass::attention_output, ActivationClass::head_input})
    plan.activations.classes[wide] = {false, NumberFormat::bf16};
  for (const ActivationClass again :
       {ActivationClass::qkv_input, ActivationClass::ffn_input, ActivationClass::down_input})
    plan.activations.classes[again] = {true, NumberFormat::bf16};
  // A layer: two norm inputs; three inputs of products, recomputed from 4-bit tensors; gate and up. The head: its
  // norm's.
  const double layer = 2 * 0.003 * 0.003 + 3 * 0.026 * 0.026 + 0.051 * 0.051, head = 0.003 * 0.003;
  EXPECT_NEAR(predicted_gradient_error(plan), std::sqrt((16 * layer + head) / 16), 1e-12);
  plan.activations.bits_by_stage = {8, 8, 8, 8};  // fp8_e4m3 in place of fp4_e2m1
  const double ratio = relative_error(NumberFormat::fp8_e4m3) / relative_error(NumberFormat::fp4_e2m1);
  EXPECT_NEAR(predicted_gradient_error(plan), ratio * std::sqrt((16 * layer + head) / 16), 1e-12);
  plan.activations.errors = {{ActivationClass::gate, 0.0}, {ActivationClass::up, 0.0}};
  EXPECT_NEAR(predicted_gradient_error(plan), ratio * std::sqrt((16 * (layer - 0.051 * 0.051) + head) / 16), 1e-12);
}

TEST(GradientError, OfRecomputationFromWhatIsKeptIsZero) {
  Plan plan = small_13b(512);
  plan.activations.recompute = Recompute::full;
  plan.activations.recompute_layers = {4, 4, 4, 4};
  plan.activations.classes[ActivationClass::gate].recompute = true;
  EXPECT_EQ(predicted_gradient_error(plan), 0.0);
}

TEST(BudgetSolver, KeepsEverythingWhereItFits) {
  const SolvedBudget solved = solve_budget(asked(small_13b(512), 1.01, 1.0), false);
  EXPECT_EQ(solved.result.chosen.gradient_error, 0.0);
  EXPECT_EQ(solved.result.chosen.step.value, solved.result.unlimited.value);
  for (const std::string& policy : solved.result.by_stage) EXPECT_EQ(policy, "all kept");
}

TEST(BudgetSolver, IsNeverWorseThanAgoqsRuleOrMegatronsLayers) {
  std::mt19937 random(5);
  int binding = 0;
  for (int trial = 0; trial < 12; ++trial) {
    Plan plan = small_13b(256 << random() % 3);
    if (trial % 3 == 1) plan.parallel.schedule = ScheduleKind::gpipe;
    if (trial % 3 == 2) {
      plan.parallel.schedule = ScheduleKind::interleaved;
      plan.parallel.chunks = 2;
    }
    const double share = 0.4 + 0.05 * static_cast<double>(random() % 12),
                 weight = std::pow(10.0, -1.0 + 0.5 * (random() % 5));
    const Plan tried = asked(plan, share, weight);
    const SolvedBudget solved = solve_budget(tried, false);
    const BudgetPoint& chosen = solved.result.chosen;
    for (const BudgetPoint& reference : solved.result.references) {
      if (!reference.fits) continue;
      EXPECT_TRUE(chosen.fits) << reference.name << " fits, share " << share;
      EXPECT_LE(chosen.cost, reference.cost) << reference.name << ", share " << share << ", weight " << weight;
      binding += chosen.cost < 0.999 * reference.cost;
    }
    // What the solver says of its plan is what the prediction says.
    const StepProfile profile = predict(solved.plan);
    EXPECT_EQ(profile.verdict.fits, chosen.fits);
    EXPECT_EQ(profile.verdict.need, chosen.memory);
    EXPECT_DOUBLE_EQ(profile.step.seconds.value, chosen.step.value);
  }
  EXPECT_GT(binding, 4);  // it is mostly better, else the test means nothing
}

TEST(BudgetSolver, MoreWeightOnErrorNeverGivesMoreError) {
  double before = 1e9;
  for (const double weight : {0.0, 0.3, 3.0, 100.0}) {
    const SolvedBudget solved = solve_budget(asked(small_13b(512), 0.7, weight), false);
    EXPECT_TRUE(solved.result.chosen.fits);
    EXPECT_LE(solved.result.chosen.gradient_error, before + 1e-12) << weight;
    before = solved.result.chosen.gradient_error;
  }
  EXPECT_LT(before, 0.02);
}

TEST(BudgetSolver, TheFrontHoldsOnlyWhatNothingBeatsAndMemoryHasAPrice) {
  const BudgetResult result = solve_budget(asked(small_13b(512), 0.75, 1.0), true).result;
  ASSERT_GE(result.pareto.size(), 3u);
  for (const BudgetPoint& a : result.pareto)
    for (const BudgetPoint& b : result.pareto) {
      const bool no_worse = a.memory <= b.memory && a.step <= b.step && a.gradient_error <= b.gradient_error;
      const bool better = a.memory < b.memory || a.step < b.step || a.gradient_error < b.gradient_error;
      EXPECT_FALSE(no_worse && better) << a.name << " beats " << b.name;
    }
  // Zero where the choice leaves a twentieth of the limit unused.
  EXPECT_GE(result.seconds_per_gib.value(), 0.0);
  EXPECT_GT(solve_budget(asked(small_13b(512), 0.6, 1.0), false).result.chosen.cost, 1.02 * result.chosen.cost);
}

TEST(BudgetSolver, AResolvedPlanHasItsPoliciesAndReadsBackFromItsFile) {
  Plan plan = asked(small_13b(512), 0.7, 1.0);
  const Plan resolved = resolve(plan);
  EXPECT_EQ(resolved.activations.method, ActivationMethod::policy);
  EXPECT_TRUE(check_plan(resolved).empty());
  EXPECT_TRUE(predict(resolved).verdict.fits);
  EXPECT_EQ(write_plan(resolve(resolved)), write_plan(resolved));
}

TEST(BudgetSolver, APlanThatNothingFitsGetsTheSmallest) {
  const SolvedBudget solved = solve_budget(asked(small_13b(512), 0.05, 1.0), false);
  EXPECT_FALSE(solved.result.chosen.fits);
  for (const BudgetPoint& reference : solved.result.references)
    EXPECT_LE(solved.result.chosen.memory, reference.memory);
}

}  // namespace
}  // namespace reckon
