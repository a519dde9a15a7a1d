// What a calibration returns for tiny jobs: everything that was asked for is there and took time. How long is the
// machine's business.
#include "runtime/train/calibration_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plan/step_documents.h"
#include "runtime/comm/local_communicator.h"
#include "runtime/train/sample_series.h"

namespace reckon {
namespace {

Plan tiny() {
  Plan plan;
  plan.hardware.device.is_cpu = true;
  plan.precision.compute = plan.activations.stored = NumberFormat::fp32;
  plan.model.name = "tiny";
  plan.model.layers = 8;
  plan.model.hidden = 32;
  plan.model.ffn_hidden = 64;
  plan.model.heads = plan.model.kv_heads = 2;
  plan.model.head_dim = 16;
  plan.model.vocabulary = 64;
  plan.batch = {32, 2, 8};
  plan.parallel.data = 2;
  plan.parallel.pipeline = 2;
  return plan;
}

CalibrationSamples calibrated(const CalibrationJobs& jobs) {
  CalibrationSamples result;
  run_ranks_as_threads(static_cast<int>(jobs.world_size()), {}, [&](Communicator& world) {
    CalibrationSamples own = calibrate(jobs, world);
    if (world.rank() == 0) result = std::move(own);
  });
  return result;
}

TEST(CalibrationRun, SampledPlansAreShortAndKeepTheirOps) {
  const Plan plan = tiny(), sampled = sampled_plan(plan, 2);
  EXPECT_EQ(sampled.world_size(), 2);
  EXPECT_EQ(sampled.parallel.pipeline, 1);
  EXPECT_EQ(sampled.micro_batches(), 1);
  EXPECT_LT(sampled.model.layers, plan.model.layers);
  const auto keys = [](const Plan& of) {
    std::vector<std::string> texts;
    for (const Op& op : section_ops(of, Section::dense_layer, planned_attention_work(of)).ops)
      texts.push_back(shape_key(op));
    return texts;
  };
  EXPECT_EQ(keys(sampled), keys(plan));
}

TEST(CalibrationRun, EverythingAskedForIsMeasured) {
  CalibrationJobs jobs;
  jobs.computing = jobs.cores = 2;
  jobs.quick = true;
  jobs.products = {{1, 32, 32, 32}, {1, 64, 32, 32}};
  jobs.collectives = {{2, 2}};
  Plan stores = tiny();
  stores.activations.stored = NumberFormat::int4;
  jobs.plans = {{sampled_plan(tiny(), 1), 1}, {sampled_plan(stores, 2), 2}};
  Plan documents = tiny();
  documents.documents.source = "fineweb";
  EXPECT_TRUE(samples_attention_apart(documents, 2));
  EXPECT_FALSE(samples_attention_apart(tiny(), 2));
  jobs.attention = {{documents, 2}};
  const CalibrationSamples samples = calibrated(jobs);

  ASSERT_EQ(samples.plans.size(), 2u);
  for (const SampledPlan& sampled : samples.plans) {
    EXPECT_GT(sampled.optimizer.value, 0.0);
    for (const OpSample& op : sampled.ops)
      if (op.shape.starts_with("gemm")) {
        EXPECT_GT(op.forward.value, 0.0) << op.op;
        EXPECT_GT(op.backward.value, 0.0) << op.op;
      }
  }
  EXPECT_EQ(samples.plans[0].storage.quantize.value, 0.0);
  EXPECT_GT(samples.plans[1].storage.quantize.value, 0.0);
  EXPECT_GT(samples.plans[1].storage.dequantize.value, 0.0);
  ASSERT_EQ(samples.attention.size(), 1u);
  EXPECT_EQ(samples.attention[0].ranks, 2);
  EXPECT_GT(samples.attention[0].forward.value, 0.0);
  EXPECT_GT(samples.attention[0].backward.value, 0.0);
  EXPECT_EQ(samples.gemms.size(), 2u * 2u * 3u);  // shapes, formats, passes
  ASSERT_EQ(samples.collectives.size(), 5u);
  for (const CollectiveSamples& collective : samples.collectives) {
    EXPECT_EQ(collective.ranks, 2);
    EXPECT_TRUE(std::ranges::is_sorted(collective.times, {}, &SizedTime::bytes));
    for (const SizedTime& time : collective.times) EXPECT_GT(time.seconds.value, 0.0);
  }
  EXPECT_GT(samples.fp32_peak.value, 0.0);
  EXPECT_GT(samples.bandwidth.value, 0.0);
  // Three rounds at least of two plans, attention, a group's collectives, products and copying.
  EXPECT_GE(samples.quietness.visits, 3 * 6);
}

// 1, 2, ..., 9: median 5, half the interquartile range 2, so sigma 2 / 0.6745 and the median's error
// 1.2533 sigma / 3.
TEST(SampleSeries, ErrorOfTheMedianComesFromTheSpread) {
  SampleSeries series;
  for (int value = 1; value <= 9; ++value) series.add(value);
  EXPECT_EQ(series.result(), 5.0);
  EXPECT_NEAR(series.relative_error(), 1.2533 * 2.0 / 0.6745 / 3.0 / 5.0, 1e-12);
  series.add(100.0);
  series.drop(1);
  EXPECT_EQ(series.count(), 9u);
  EXPECT_EQ(series.result(), 5.0);
}

TEST(SampleSeries, TwoValuesSayNothingOfTheirError) {
  SampleSeries series;
  series.add(1.0);
  series.add(1.0);
  EXPECT_TRUE(std::isinf(series.relative_error()));
}

}  // namespace
}  // namespace reckon
