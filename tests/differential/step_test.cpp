// The closed form against the simulator on random plans: two ways to the same step, written independently.
#include <gtest/gtest.h>

#include <cmath>

#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "sim/simulate_step.h"
#include "tests/sim/plans.h"

namespace reckon {
namespace {

constexpr std::uint64_t kPlans = 1000;

double error(Seconds simulated, Seconds predicted) {
  return std::abs(simulated / predicted - 1.0);
}

/// The closed form lets messages between stages pass collectives on the same links, so they are kept apart here. Then
/// only one approximation is left: between the chunks of an interleaved schedule it does not know when a stage idles,
/// and so when waiting gradient buckets move without slowing anything.
TEST(ClosedFormAgainstSimulator, StepTimesAgreeOnAThousandPlans) {
  std::mt19937_64 random(1);
  int interleaved = 0, interleaved_apart = 0;
  for (std::uint64_t i = 0; i < kPlans; ++i) {
    const Plan plan = random_plan(random);
    SCOPED_TRACE(testing::Message() << "plan " << i);
    const Seconds predicted = predict(plan).step.seconds;
    const auto played = play_step(plan, estimate_op_times(plan), {.messages_share_links = false});
    const double apart = error(to_seconds(played->end), predicted);
    if (plan.parallel.schedule != ScheduleKind::interleaved) {
      EXPECT_LT(apart, 0.001);  // what is left is the order of sections in uneven layers
      continue;
    }
    ++interleaved;
    interleaved_apart += apart > 0.01;
    EXPECT_LT(apart, 0.05);
  }
  EXPECT_LE(interleaved_apart, interleaved / 20);
}

TEST(ClosedFormAgainstSimulator, SharedLinksAreNamedAsTheReasonWhereStepsDiffer) {
  std::mt19937_64 random(1);
  int differ = 0;
  for (int i = 0; i < 100; ++i) {
    const Plan plan = random_plan(random);
    if (plan.parallel.schedule == ScheduleKind::interleaved) continue;
    const StepProfile predicted = predict(plan);
    const Simulation simulation = simulate_step(predicted, estimate_op_times(plan));
    const bool named =
        simulation.profile.assumptions.back().find("pass collectives on the same links") != std::string::npos;
    EXPECT_EQ(named, error(simulation.profile.step.seconds, predicted.step.seconds) > 0.01);
    differ += named;
  }
  EXPECT_GT(differ, 0);
  EXPECT_LT(differ, 25);
}

TEST(ClosedFormAgainstSimulator, PeakBytesAreEqual) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    const Plan plan = random_plan(random);
    SCOPED_TRACE(testing::Message() << "plan " << i);
    const StepProfile predicted = predict(plan);
    const Simulation simulation = simulate_step(predicted, estimate_op_times(plan));
    ASSERT_EQ(simulation.profile.stages.size(), predicted.stages.size());
    for (std::size_t stage = 0; stage < predicted.stages.size(); ++stage) {
      const StageMemory& simulated = simulation.profile.stages[stage].memory;
      const StageMemory& closed = predicted.stages[stage].memory;
      EXPECT_EQ(simulated.peak_allocated.value, closed.peak_allocated.value) << "stage " << stage;
      EXPECT_EQ(simulated.activations.value, closed.activations.value) << "stage " << stage;
    }
  }
}

TEST(ClosedFormAgainstSimulator, TrafficIsEqual) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100; ++i) {
    const Plan plan = random_plan(random);
    SCOPED_TRACE(testing::Message() << "plan " << i);
    const StepProfile predicted = predict(plan);
    const Simulation simulation = simulate_step(predicted, estimate_op_times(plan));
    for (const TrafficEntry& closed : predicted.traffic) {
      if (closed.group != "tensor" && closed.group != "pipeline") continue;
      bool found = false;
      for (const TrafficEntry& simulated : simulation.profile.traffic) {
        if (simulated.group != closed.group || simulated.collective != closed.collective ||
            simulated.dtype != closed.dtype)
          continue;
        found = true;
        EXPECT_EQ(simulated.calls, closed.calls) << closed.group << " " << closed.collective;
        EXPECT_EQ(simulated.bytes_per_rank, closed.bytes_per_rank) << closed.group << " " << closed.collective;
      }
      EXPECT_TRUE(found) << closed.group << " " << closed.collective;
    }
  }
}

}  // namespace
}  // namespace reckon
