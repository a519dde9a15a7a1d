#include "cost_model/step_time.h"

#include <gtest/gtest.h>

#include <random>

#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "tests/support/small_plans.h"

namespace reckon {
namespace {

Plan pipeline_plan(std::int64_t stages, std::int64_t micro_batches, std::int64_t chunks = 1) {
  Plan plan;
  plan.parallel.pipeline = stages;
  plan.parallel.chunks = chunks;
  plan.parallel.schedule = chunks > 1 ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward;
  plan.batch = {128, 1, micro_batches};
  return plan;
}

std::vector<Seconds> edges(std::size_t stages, double delay) {
  return std::vector<Seconds>(stages, Seconds(delay));
}

ActionDuration even(double forward, double backward) {
  return [=](std::int64_t, const Action& action, Seconds) {
    return Seconds(action.kind == ActionKind::forward ? forward : backward);
  };
}

double last_end(const std::vector<Seconds>& ends) {
  double last = 0.0;
  for (const Seconds end : ends) last = std::max(last, end.value);
  return last;
}

TEST(PipelineEnds, EvenStagesTakeMicroBatchesPlusBubble) {
  // (m + p - 1)(f + b) = (8 + 3) * 3
  EXPECT_DOUBLE_EQ(last_end(pipeline_ends(pipeline_plan(4, 8), edges(4, 0.0), even(1.0, 2.0))), 33.0);
}

TEST(PipelineEnds, InterleavingDividesTheBubble) {
  // m(f + b) + (p - 1)(f + b) / v = 8 * 3 + 3 * 3 / 2, chunks of half the time
  EXPECT_DOUBLE_EQ(last_end(pipeline_ends(pipeline_plan(4, 8, 2), edges(4, 0.0), even(0.5, 1.0))), 28.5);
}

TEST(PipelineEnds, TheSlowestLastStageSetsThePace) {
  // sum of x_i + (m - 1) max x_i = (3 + 3 + 3 + 6) + 7 * 6
  const auto duration = [](std::int64_t stage, const Action& action, Seconds) {
    return Seconds((action.kind == ActionKind::forward ? 1.0 : 2.0) * (stage == 3 ? 2.0 : 1.0));
  };
  EXPECT_DOUBLE_EQ(last_end(pipeline_ends(pipeline_plan(4, 8), edges(4, 0.0), duration)), 57.0);
}

TEST(PipelineEnds, OneMicroBatchPassesEveryEdgeTwice) {
  // 3 stages forward and backward, 2 edges each way: 3 * 3 + 4 * 0.25
  EXPECT_DOUBLE_EQ(last_end(pipeline_ends(pipeline_plan(3, 1), edges(3, 0.25), even(1.0, 2.0))), 10.0);
}

TEST(PipelineEnds, GpipeRunsAllForwardsFirst) {
  Plan plan = pipeline_plan(2, 4);
  plan.parallel.schedule = ScheduleKind::gpipe;
  EXPECT_DOUBLE_EQ(last_end(pipeline_ends(plan, edges(2, 0.0), even(1.0, 2.0))), 15.0);  // (4 + 1) * 3
}

TEST(PipelineEnds, AnActionIsToldHowLongItsStageWaited) {
  // Two stages, one micro-batch, 1 s each, no delays: stage 1 waits 1 s for its input, stage 0 waits 3 s (forward of
  // stage 1 and its backward of 2 s) between its forward and its backward.
  std::vector<double> waits;
  pipeline_ends(pipeline_plan(2, 1), edges(2, 0.0), [&](std::int64_t, const Action& action, Seconds idle) {
    waits.push_back(idle.value);
    return Seconds(action.kind == ActionKind::forward ? 1.0 : 2.0);
  });
  EXPECT_EQ(waits, (std::vector<double>{0.0, 1.0, 0.0, 3.0}));
}

TEST(Overlapped, BothRunSlowedUntilOneEnds) {
  // 10 s of compute slowed 1.2 ends at 12 s; by then 12 / 1.5 = 8 s of 20 s communication are done.
  EXPECT_DOUBLE_EQ(overlapped(Seconds(10), Seconds(20), 1.2, 1.5).value, 24.0);
  EXPECT_DOUBLE_EQ(overlapped(Seconds(10), Seconds(3), 2.0, 2.0).value, 13.0);  // factors of 2: no overlap
  EXPECT_DOUBLE_EQ(overlapped(Seconds(10), Seconds(0), 1.2, 1.5).value, 10.0);
}

}  // namespace
}  // namespace reckon
