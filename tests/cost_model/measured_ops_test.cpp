// Ops that were measured on the machine a plan is predicted for, and attention over other documents than were measured.
#include <gtest/gtest.h>

#include <stdexcept>

#include "cost_model/op_cost.h"
#include "plan/core_sharing.h"
#include "tests/support/small_plans.h"

namespace reckon {
namespace {

/// One rank on two cores, fp32, rows of 1024 tokens.
Plan cpu_plan() {
  Plan plan = llama3_8b(1024);
  plan.hardware.device.is_cpu = true;
  plan.hardware.device.peak = {{NumberFormat::fp32, FlopsPerSecond(1e11)}};
  plan.hardware.device.memory_bandwidth = BytesPerSecond(1e10);
  plan.hardware.cores = 2;
  plan.hardware.devices_per_node = 2;
  plan.precision.compute = NumberFormat::fp32;
  return plan;
}

Op attention_with(const Plan& plan, double pairs) {
  AttentionWork work = single_document_work(plan);
  work.pairs_per_row = pairs;
  for (const Op& op : section_ops(plan, Section::dense_layer, work).ops)
    if (op.kind == OpKind::attention) return op;
  throw std::logic_error("a layer without attention");
}

OpSample sample_with(const Plan& plan, double pairs, double forward, double backward) {
  const Op op = attention_with(plan, pairs);
  return {"attention", measured_shape(op, ranks_at_once(plan)), Seconds(forward), Seconds(backward),
          NumberFormat::fp32};
}

TEST(MeasuredAttention, IsTakenAsItIsAndCarriedOverToOtherDocumentsByPairs) {
  Plan plan = cpu_plan();
  plan.hardware.time.op_samples = {sample_with(plan, 100e3, 1.0, 3.0), sample_with(plan, 400e3, 5.0, 12.0)};
  const GroupLayouts layouts(plan);
  const OpTime known = op_time(plan, layouts, attention_with(plan, 400e3));
  EXPECT_DOUBLE_EQ(known.forward.value, 5.0);
  EXPECT_DOUBLE_EQ(known.input_gradient.value, 12.0);
  // 1024 queries of 48 keys beside the pairs: (120,000 + 49,152) / (100,000 + 49,152)
  const OpTime other = op_time(plan, layouts, attention_with(plan, 120e3));
  EXPECT_DOUBLE_EQ(other.forward.value, 169152.0 / 149152.0);
  EXPECT_DOUBLE_EQ(other.input_gradient.value, 3 * 169152.0 / 149152.0);
}

TEST(MeasuredAttention, OfOtherHeadsOrRanksSaysNothing) {
  Plan plan = cpu_plan();
  plan.hardware.time.op_samples = {sample_with(plan, 100e3, 1e6, 3e6)};
  Plan halves = plan;
  halves.parallel.tensor = 2;  // half the heads, and two ranks at once
  const OpTime time = op_time(halves, GroupLayouts(halves), attention_with(halves, 100e3));
  EXPECT_LT(time.forward.value, 1.0);
}

TEST(AttentionKey, NamesPairsAtItsEnd) {
  const Op op = attention_with(cpu_plan(), 123456);
  EXPECT_TRUE(shape_key(op).starts_with(attention_key(op.attention)));
  EXPECT_EQ(pairs_of_key(shape_key(op)), 123456.0);
  EXPECT_EQ(pairs_of_key(measured_shape(op, 2)), 123456.0);
  EXPECT_EQ(pairs_of_key("gemm 1x2x3"), std::nullopt);
  EXPECT_EQ(pairs_of_key("attention queries 1 pairs x"), std::nullopt);
}

}  // namespace
}  // namespace reckon
