#include "plan/core_sharing.h"

#include <gtest/gtest.h>

#include "tests/support/small_plans.h"

namespace reckon {
namespace {

Plan on_two_cores(std::int64_t data, std::int64_t pipeline) {
  Plan plan = gpt(64);
  plan.hardware.device.is_cpu = true;
  plan.hardware.cores = 2;
  plan.parallel.data = data;
  plan.parallel.pipeline = pipeline;
  plan.batch = {64, 1, 4 * data};  // 4 micro-batches a replica
  return plan;
}

TEST(CoreSharing, RanksBeyondTheCoresTakeTurns) {
  EXPECT_EQ(core_sharing(on_two_cores(1, 1), 1.0), 1.0);
  EXPECT_EQ(core_sharing(on_two_cores(2, 1), 2.0), 1.0);
  EXPECT_EQ(core_sharing(on_two_cores(4, 1), 4.0), 2.0);
  EXPECT_FALSE(takes_turns(on_two_cores(2, 1)));
  EXPECT_TRUE(takes_turns(on_two_cores(4, 1)));
}

// Four equal stages and four micro-batches: busy for 4 of 7 slots, so that 16/7 of four ranks compute at a time.
TEST(CoreSharing, AStageThatWaitsLendsItsCore) {
  EXPECT_DOUBLE_EQ(core_sharing(on_two_cores(1, 4), 16.0 / 7.0), 8.0 / 7.0);
  EXPECT_EQ(core_sharing(on_two_cores(1, 4), 1.5), 1.0);
}

TEST(CoreSharing, OpsAreMeasuredBesideAsManyRanksAsComputeAtATime) {
  EXPECT_EQ(ranks_at_once(on_two_cores(1, 1)), 1);
  EXPECT_EQ(ranks_at_once(on_two_cores(4, 1)), 2);
  Op op;
  op.kind = OpKind::gemm;
  op.gemm = {1, 8, 16, 32};
  EXPECT_EQ(measured_shape(op, 1), shape_key(op));
  EXPECT_EQ(measured_shape(op, 2), shape_key(op) + ", 2 ranks at once");
}

TEST(CoreSharing, NothingIsGainedByOverlappingWithoutAFreeCore) {
  Plan plan = on_two_cores(2, 1);
  EXPECT_EQ(overlap_slowdown(plan).compute, 2.0);
  EXPECT_EQ(overlap_slowdown(plan).communication, 2.0);
  plan.hardware.cores = 3;
  EXPECT_EQ(overlap_slowdown(plan).compute, plan.hardware.time.overlap_compute_slowdown);
}

TEST(CoreSharing, DevicesAndUncountedCoresAreNotShared) {
  Plan plan = on_two_cores(4, 1);
  plan.hardware.cores = 0;
  EXPECT_EQ(core_sharing(plan, 4.0), 1.0);
  plan.hardware.cores = 2;
  plan.hardware.device.is_cpu = false;
  EXPECT_EQ(core_sharing(plan, 4.0), 1.0);
}

}  // namespace
}  // namespace reckon
