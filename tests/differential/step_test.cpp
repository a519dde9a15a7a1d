// The closed form against the simulator on random plans: two ways to the same step, written independently.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <tuple>

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

constexpr const char* kMessagesPassCollectives =
    "which lets messages between stages pass collectives on the same links";

/// What the profile says the closed form assumes wrongly; empty where it says that nothing differs.
std::string failing_assumption(const StepProfile& simulated) {
  for (const std::string& line : simulated.assumptions)
    if (const auto found = line.find("against the closed form"); found != std::string::npos)
      return line.substr(std::min(line.size(), found + std::string("against the closed form, ").size()));
  return "";
}

/// What is left are picoseconds, to which the simulator rounds the time of every task.
constexpr double kRounding = 1e-6;

TEST(ClosedFormAgainstSimulator, StepTimesAreEqualWhereMessagesHaveLinksOfTheirOwn) {
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < kPlans; ++i) {
    const Plan plan = random_plan(random);
    SCOPED_TRACE(testing::Message() << "plan " << i);
    const auto played = play_step(plan, estimate_op_times(plan), {.messages_share_links = false});
    EXPECT_LT(error(to_seconds(played->end), predict(plan).step.seconds), kRounding);
  }
}

TEST(ClosedFormAgainstSimulator, WhereStepsDifferByMoreThanAHundredthTheFailingAssumptionIsNamed) {
  std::mt19937_64 random(1);
  int differ = 0;
  for (std::uint64_t i = 0; i < kPlans; ++i) {
    const Plan plan = random_plan(random);
    SCOPED_TRACE(testing::Message() << "plan " << i);
    const StepProfile predicted = predict(plan);
    const Simulation simulation = simulate_step(predicted, estimate_op_times(plan));
    const bool differs = error(simulation.profile.step.seconds, predicted.step.seconds) > 0.01;
    EXPECT_EQ(failing_assumption(simulation.profile), differs ? kMessagesPassCollectives : "");
    // The assumption can only fail where messages and a collective leave the node.
    const bool messages_leave = plan.parallel.pipeline > 1 && plan.world_size() > plan.hardware.devices_per_node;
    EXPECT_TRUE(messages_leave || !differs);
    differ += differs;
  }
  EXPECT_GT(differ, 50);
  EXPECT_LT(differ, 250);
}

TEST(ClosedFormAgainstSimulator, PeakBytesAreEqual) {
  std::mt19937_64 random(2);
  for (std::uint64_t i = 0; i < kPlans; ++i) {
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

using TrafficKey = std::tuple<std::string, std::string, std::string>;  // group, collective, dtype

std::map<TrafficKey, TrafficEntry> by_key(const std::vector<TrafficEntry>& traffic) {
  std::map<TrafficKey, TrafficEntry> entries;
  for (const TrafficEntry& entry : traffic) entries[{entry.group, entry.collective, entry.dtype}] = entry;
  return entries;
}

TEST(ClosedFormAgainstSimulator, TrafficIsEqual) {
  std::mt19937_64 random(3);
  std::map<std::string, int> plans_with_group;
  for (int i = 0; i < 300; ++i) {
    Plan plan = random_plan(random);
    if (i % 4 == 0) plan.kernels.loss = LossKernel::chunked;  // makes logits again, and gathers their input again
    SCOPED_TRACE(testing::Message() << "plan " << i);
    const StepProfile predicted = predict(plan);
    const auto closed = by_key(predicted.traffic);
    const auto simulated = by_key(simulate_step(predicted, estimate_op_times(plan)).profile.traffic);
    for (const auto& [key, entry] : closed) {
      const auto& [group, collective, dtype] = key;
      SCOPED_TRACE(group + " " + collective + " " + dtype);
      ++plans_with_group[group];
      ASSERT_TRUE(simulated.contains(key));
      EXPECT_EQ(simulated.at(key).calls, entry.calls);
      EXPECT_EQ(simulated.at(key).bytes_per_rank, entry.bytes_per_rank);
    }
    for (const auto& [key, entry] : simulated)
      EXPECT_TRUE(closed.contains(key)) << "simulated only: " << entry.group << " " << entry.collective;
  }
  for (const char* group : {"tensor", "pipeline", "gradient", "shard", "replica", "expert", "expert_gradient",
                            "embedding", "ulysses", "ring", "gradient_inside", "gradient_across"})
    EXPECT_GT(plans_with_group[group], 5) << group;
}

}  // namespace
}  // namespace reckon
