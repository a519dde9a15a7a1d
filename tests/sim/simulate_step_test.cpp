// Properties that hold for every simulated step, tried on random plans with a fixed seed.
#include "sim/simulate_step.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "sim/explain.h"
#include "tests/sim/plans.h"

namespace reckon {
namespace {

constexpr int kPlans = 60;

Simulation simulate(const Plan& plan, const SimulationOptions& options = {}) {
  return simulate_step(predict(plan), estimate_op_times(plan), options);
}

/// Calls `check` with every plan of the set; a failure names the seed.
template <class Check>
void for_random_plans(Check&& check) {
  for (std::uint64_t seed = 0; seed < kPlans; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed + 1000);
    check(random_plan(random));
  }
}

TEST(RandomPlans, ExposedSecondsSumToTheStep) {
  for_random_plans([](const Plan& plan) {
    const Simulation simulation = simulate(plan);
    double sum = 0.0;
    for (const TimeComponent& component : simulation.profile.time) {
      EXPECT_GE(component.exposed_seconds.value, 0.0) << component.component;
      sum += component.exposed_seconds.value;
    }
    // Every entry is a whole number of picoseconds: only the addition of doubles rounds.
    EXPECT_NEAR(sum, simulation.profile.step.seconds.value, 1e-12);
  });
}

TEST(RandomPlans, StreamsRunOneTaskAtATimeWithinTheStep) {
  for_random_plans([](const Plan& plan) {
    const Simulation simulation = simulate(plan);
    for (const int rank : simulation.step->kept) {
      for (int stream = 0; stream < kStreams; ++stream) {
        Picoseconds now{0}, busy{0}, idle{0};
        for (const Span& span : simulation.step->spans->spans(rank, stream)) {
          ASSERT_GE(span.start, now);
          ASSERT_GE(span.start, span.arrival);
          ASSERT_GE(span.end, span.start);
          idle += span.start - now;
          busy += span.end - span.start;
          now = span.end;
        }
        idle += simulation.step->end - now;
        EXPECT_EQ((busy + idle).value, simulation.step->end.value);
        EXPECT_GE(simulation.step->end, now);
      }
    }
  });
}

TEST(RandomPlans, TheCriticalPathReachesFromStartToEndWithoutGaps) {
  for_random_plans([](const Plan& plan) {
    const Simulation simulation = simulate(plan);
    const auto path = critical_path(*simulation.step->spans, simulation.step->graph.labels,
                                    static_cast<int>(simulation.simulated_ranks));
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(path.front().start.value, 0);
    for (std::size_t i = 1; i < path.size(); ++i) EXPECT_EQ(path[i].start.value, path[i - 1].end.value);
    EXPECT_EQ(path.back().end.value, simulation.step->end.value);
  });
}

TEST(RandomPlans, MemoryReturnsToItsLevelAndStaysWithinWhatIsReserved) {
  for_random_plans([](const Plan& plan) {
    const Simulation simulation = simulate(plan);
    for (const MemoryTimeline& timeline : simulation.memory) {
      EXPECT_EQ(timeline.left_over.value, 0);
      EXPECT_GE(peak_reserved(simulation.profile.plan, timeline), timeline.peak);
      EXPECT_EQ(std::accumulate(timeline.at_peak.begin(), timeline.at_peak.end(), std::int64_t{0}),
                timeline.peak.value);
      Bytes alive;
      for (const LiveBlocks& row : alive_at_peak(timeline)) alive += row.bytes;
      EXPECT_EQ(alive, timeline.peak);
      for (std::size_t i = 1; i < timeline.changes.size(); ++i)
        ASSERT_GE(timeline.changes[i].time, timeline.changes[i - 1].time);
      for (const BytesByCategory& bytes : bytes_over_time(timeline))
        for (const std::int64_t category : bytes) ASSERT_GE(category, 0);
    }
  });
}

TEST(RandomPlans, EverythingSentIsReceived) {
  for_random_plans([](const Plan& plan) {
    const Simulation simulation = simulate(plan);
    const PlayedStep& step = *simulation.step;
    const auto stages = static_cast<int>(step.graph.stages.size());
    for (int rank = 0; rank < stages; ++rank) {
      std::int32_t awaited[2] = {0, 0};
      const Program& program = step.graph.stages[static_cast<std::size_t>(rank)].program;
      for (const Wait& wait : program.waits)
        if (wait.counter >= kStreams)
          awaited[wait.counter - kStreams] = std::max(awaited[wait.counter - kStreams], wait.count);
      const int before = (rank + stages - 1) % stages, after = (rank + 1) % stages;
      EXPECT_EQ(awaited[kActivations], static_cast<int>(step.spans->spans(before, kSendForward).size()));
      EXPECT_EQ(awaited[kGradients], static_cast<int>(step.spans->spans(after, kSendBackward).size()));
    }
  });
}

TEST(RandomPlans, FoldingIsExact) {
  for_random_plans([](const Plan& plan) {
    if (plan.world_size() > 64) return;
    const OpTimes times = estimate_op_times(plan);
    const auto folded = play_step(plan, times), unfolded = play_step(plan, times, {.unfolded = true});
    EXPECT_EQ(folded->end.value, unfolded->end.value);
    EXPECT_EQ(folded->cluster.ranks.size(), static_cast<std::size_t>(plan.parallel.pipeline));
    EXPECT_EQ(unfolded->cluster.ranks.size(), static_cast<std::size_t>(plan.world_size()));
  });
}

TEST(RandomPlans, MoreSpeedNeverCosts) {
  for_random_plans([](const Plan& plan) {
    Plan changed = plan;
    const double base = simulate(changed).profile.step.seconds.value;
    changed.sim.network_scale = 2.0;
    EXPECT_LE(simulate(changed).profile.step.seconds.value, base * (1 + 1e-9));
    changed.sim = {};
    changed.sim.compute_scale = 2.0;
    EXPECT_LE(simulate(changed).profile.step.seconds.value, base * (1 + 1e-9));
    changed.sim = {};
    changed.sim.free_overlap = true;
    EXPECT_LE(simulate(changed).profile.step.seconds.value, base * (1 + 1e-9));
  });
}

TEST(SimulateStep, FreeCommunicationLeavesOnlyWorkAndBubble) {
  Plan plan = llama2_13b_on_64();
  plan.sim.free_communication = true;
  for (const TimeComponent& component : simulate(plan).profile.time) {
    const bool is_communication = component.component.find("all_") != std::string::npos ||
                                  component.component.find("reduce_scatter") != std::string::npos ||
                                  component.component.find("send") != std::string::npos;
    if (is_communication) {
      EXPECT_EQ(component.exposed_seconds.value, 0.0) << component.component;
    }
  }
}

TEST(SimulateStep, JitterIsReproducibleAndDoesNotDependOnThreads) {
  Plan plan = test_plan(test_model(4));
  plan.parallel.data = 2;
  plan.parallel.pipeline = 2;
  plan.parallel.tensor = 2;
  plan.parallel.sequence = true;
  plan.sim.jitter = 0.05;
  plan.sim.seed = 3;
  const auto samples = [&](int threads) {
    std::vector<double> values;
    for (const Seconds time : simulate(plan, {.samples = 20, .threads = threads}).step_samples)
      values.push_back(time.value);
    return values;
  };
  const auto first = samples(1);
  ASSERT_EQ(first.size(), 20u);
  EXPECT_EQ(first, samples(1));
  EXPECT_EQ(first, samples(3));
  EXPECT_LT(first.front(), first.back());
  plan.sim.jitter = 0.0;
  EXPECT_GT(first[10], simulate(plan).profile.step.seconds.value);  // the slowest member counts at every meeting
}

TEST(SimulateStep, ASlowRankDelaysEverybodyAndShowsAsWaiting) {
  Plan plan = test_plan(test_model(4));
  plan.parallel.tensor = 4;
  plan.parallel.sequence = true;
  const double even = simulate(plan).profile.step.seconds.value;
  plan.sim.slow_ranks = {{2, 1.5}};
  const Simulation slow = simulate(plan);
  EXPECT_GT(slow.profile.step.seconds.value, even * 1.1);
  EXPECT_EQ(slow.step->slowest, 2);
  const auto waiting = [&](int rank) {
    for (const TimeComponent& component :
         break_down(*slow.step->spans, slow.step->graph.labels, rank, slow.step->end, slow.step->perturbation))
      if (component.component == "waiting") return component.exposed_seconds.value;
    return 0.0;
  };
  EXPECT_GT(waiting(0), 0.1 * even);
  EXPECT_EQ(waiting(2), 0.0);
}

TEST(SimulateStep, TheMemoryLimitNamesTheOpThatCrossesIt) {
  Plan plan = llama2_13b_on_64();
  plan.hardware.device.is_cpu = true;  // plain bytes: the limit is exact
  const Simulation fits = simulate(plan);
  Bytes peak;
  for (const MemoryTimeline& timeline : fits.memory) peak = std::max(peak, timeline.peak);
  EXPECT_FALSE(simulate(plan, {.memory_limit = peak}).out_of_memory);
  const Simulation short_of_a_byte = simulate(plan, {.memory_limit = peak - Bytes(1)});
  ASSERT_TRUE(short_of_a_byte.out_of_memory);
  EXPECT_FALSE(short_of_a_byte.profile.verdict.fits);
  const RefusedAllocation& overflow = *short_of_a_byte.out_of_memory;
  EXPECT_EQ(overflow.stage, 0);  // the first stage holds most
  EXPECT_EQ(overflow.op.value().substr(0, 9), "backward.");
  EXPECT_EQ(overflow.micro_batch, 0);  // the first backward finds the most micro-batches in flight
  EXPECT_EQ((overflow.allocated + overflow.asked).value, peak.value);
}

TEST(SimulateStep, SavingsAreThoseOfASimulationWithoutThePart) {
  Plan plan = test_plan(test_model(8));
  plan.parallel.pipeline = 2;
  plan.parallel.tensor = 4;
  plan.parallel.sequence = true;
  plan.parallel.data = 2;
  const Simulation simulation = simulate(plan);
  std::map<std::string, double> saved;
  for (const Saving& row : explain(*simulation.step)) {
    EXPECT_NEAR((row.step + row.saved).value, simulation.profile.step.seconds.value, 1e-12);
    saved[row.component] = row.saved.value;
  }
  EXPECT_GT(saved.at("forward.gate_up"), 0.0);
  EXPECT_GT(saved.at("bubble"), 0.0);
  EXPECT_GE(saved.at("all communication"), saved.at("tensor.all_gather"));
  plan.sim.free_communication = true;  // another way to the same number
  EXPECT_NEAR(simulation.profile.step.seconds.value - simulate(plan).profile.step.seconds.value,
              saved.at("all communication"), 1e-12);
}

}  // namespace
}  // namespace reckon
