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

PipelineTimes even_times(std::size_t stages, std::size_t chunks, double forward, double backward, double edge) {
  PipelineTimes times;
  times.forward.assign(stages, std::vector<Seconds>(chunks, Seconds(forward)));
  times.backward.assign(stages, std::vector<Seconds>(chunks, Seconds(backward)));
  times.last_backward = times.backward;
  times.edges.assign(stages, Seconds(edge));
  return times;
}

double last_end(const std::vector<Seconds>& ends) {
  double last = 0.0;
  for (const Seconds end : ends) last = std::max(last, end.value);
  return last;
}

TEST(PipelineEnds, EvenStagesTakeMicroBatchesPlusBubble) {
  // (m + p - 1)(f + b) = (8 + 3) * 3
  EXPECT_DOUBLE_EQ(last_end(pipeline_ends(pipeline_plan(4, 8), even_times(4, 1, 1.0, 2.0, 0.0))), 33.0);
}

TEST(PipelineEnds, InterleavingDividesTheBubble) {
  // m(f + b) + (p - 1)(f + b) / v = 8 * 3 + 3 * 3 / 2, chunks of half the time
  EXPECT_DOUBLE_EQ(last_end(pipeline_ends(pipeline_plan(4, 8, 2), even_times(4, 2, 0.5, 1.0, 0.0))), 28.5);
}

TEST(PipelineEnds, TheSlowestLastStageSetsThePace) {
  // sum of x_i + (m - 1) max x_i = (3 + 3 + 3 + 6) + 7 * 6
  PipelineTimes times = even_times(4, 1, 1.0, 2.0, 0.0);
  times.forward[3][0] = Seconds(2.0);
  times.backward[3][0] = times.last_backward[3][0] = Seconds(4.0);
  EXPECT_DOUBLE_EQ(last_end(pipeline_ends(pipeline_plan(4, 8), times)), 57.0);
}

TEST(PipelineEnds, OneMicroBatchPassesEveryEdgeTwice) {
  // 3 stages forward and backward, 2 edges each way: 3 * 3 + 4 * 0.25
  EXPECT_DOUBLE_EQ(last_end(pipeline_ends(pipeline_plan(3, 1), even_times(3, 1, 1.0, 2.0, 0.25))), 10.0);
}

TEST(PipelineEnds, GpipeRunsAllForwardsFirst) {
  Plan plan = pipeline_plan(2, 4);
  plan.parallel.schedule = ScheduleKind::gpipe;
  EXPECT_DOUBLE_EQ(last_end(pipeline_ends(plan, even_times(2, 1, 1.0, 2.0, 0.0))), 15.0);  // (4 + 1) * 3
}

TEST(Overlapped, BothRunSlowedUntilOneEnds) {
  // 10 s of compute slowed 1.2 ends at 12 s; by then 12 / 1.5 = 8 s of 20 s communication are done.
  EXPECT_DOUBLE_EQ(overlapped(Seconds(10), Seconds(20), 1.2, 1.5).value, 24.0);
  EXPECT_DOUBLE_EQ(overlapped(Seconds(10), Seconds(3), 2.0, 2.0).value, 13.0);  // factors of 2: no overlap
  EXPECT_DOUBLE_EQ(overlapped(Seconds(10), Seconds(0), 1.2, 1.5).value, 10.0);
}

}  // namespace
}  // namespace reckon
