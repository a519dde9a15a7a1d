#include "cost_model/fit_hardware.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cost_model/collective_cost.h"
#include "cost_model/gemm_cost.h"
#include "cost_model/state_cost.h"
#include "cost_model/storage_rates.h"
#include "plan/core_sharing.h"
#include "plan/stage_sections.h"
#include "plan/step_documents.h"

namespace reckon {
namespace {

HardwareSpec machine() {
  HardwareSpec hardware;
  hardware.device.is_cpu = true;
  hardware.device.peak = {{NumberFormat::fp32, FlopsPerSecond(1e11)}, {NumberFormat::bf16, FlopsPerSecond(2e11)}};
  hardware.device.memory_bandwidth = BytesPerSecond(1e10);
  hardware.devices_per_node = 2;
  hardware.cores = 2;
  return hardware;
}

Plan small_plan(std::int64_t hidden) {
  Plan plan;
  plan.hardware = machine();
  plan.precision.compute = plan.activations.stored = NumberFormat::fp32;
  plan.model.layers = 1;
  plan.model.hidden = hidden;
  plan.model.ffn_hidden = 2 * hidden;
  plan.model.heads = plan.model.kv_heads = hidden / 64;
  plan.model.head_dim = 64;
  plan.model.vocabulary = 512;
  plan.batch = {64, 1, 1};
  return plan;
}

/// A machine whose ops take known times: bytes at half the bandwidth and 10 us, the optimizer 0.1 s.
SampledPlan sampled(std::int64_t hidden) {
  SampledPlan one{small_plan(hidden), {}, Seconds(0.1), {}};
  for (const Section section : {Section::embedding, Section::dense_layer, Section::head})
    for (const Op& op : section_ops(one.plan, section, planned_attention_work(one.plan)).ops) {
      const auto seconds = [](Bytes bytes) { return Seconds(2.0 * static_cast<double>(bytes.value) / 1e10 + 1e-5); };
      one.ops.push_back({std::string(op.name), shape_key(op), seconds(op.forward_traffic), seconds(op.backward_traffic),
                         NumberFormat::fp32});
    }
  return one;
}

CalibrationSamples samples() {
  CalibrationSamples samples;
  samples.plans = {sampled(128), sampled(256), sampled(512)};
  for (const std::int64_t size : {128, 256, 512, 1024})
    for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
      const double flops = 2.0 * static_cast<double>(size * size * size);
      samples.gemms.push_back({1, size, size, size, pass, NumberFormat::fp32, Seconds(1.5 * flops / 1e11 + 2e-5)});
      samples.gemms.push_back({1, size, size, size, pass, NumberFormat::bf16, Seconds(1.5 * flops / 2e11 + 2e-5)});
    }
  return samples;
}

TEST(FitHardware, ProductsAreFittedByPassOverBothFormats) {
  HardwareSpec hardware = machine();
  const std::vector<FitQuality> qualities = fit_hardware(samples(), hardware);
  const OpFit& fit = hardware.time.gemm.at(Pass::forward);
  EXPECT_NEAR(fit.flops_factor, 1.5, 1e-6);
  EXPECT_NEAR(fit.constant.value, 2e-5, 1e-10);
  EXPECT_EQ(qualities.front().kind, "product, forward");
  EXPECT_EQ(qualities.front().samples, 8);
  EXPECT_EQ(qualities.front().held_out, 2);  // the second and the fifth of eight; the last never
  hardware.time.gemm_samples.clear();
  const double flops = 2.0 * 700.0 * 700.0 * 700.0;
  EXPECT_NEAR(gemm_cost(hardware, {1, 700, 700, 700}, Pass::weight_gradient, NumberFormat::bf16).seconds.value,
              1.5 * flops / 2e11 + 2e-5, 1e-8);
}

TEST(FitHardware, OpsBoundByMemoryAreBytesAndAConstant) {
  HardwareSpec hardware = machine();
  fit_hardware(samples(), hardware);
  EXPECT_NEAR(hardware.time.memory_bound.bytes_factor, 2.0, 1e-6);
  EXPECT_NEAR(hardware.time.memory_bound.constant.value, 1e-5, 1e-10);
  EXPECT_NEAR(hardware.time.memory_bound.relative_error, 0.0, 1e-6);
}

/// Attention of the first sampled plan, as if its documents had been measured apart.
AttentionSample attention_apart() {
  const Plan plan = small_plan(128);
  for (const Op& op : section_ops(plan, Section::dense_layer, planned_attention_work(plan)).ops)
    if (op.kind == OpKind::attention) return {op, 1, NumberFormat::fp32, Seconds(0.3), Seconds(0.7)};
  throw std::logic_error("a layer without attention");
}

TEST(FitHardware, AttentionMeasuredApartReplacesThatOfTheSteps) {
  CalibrationSamples measured = samples();
  measured.attention = {attention_apart()};
  HardwareSpec hardware = machine();
  fit_hardware(measured, hardware);
  const std::string shape = measured_shape(measured.attention[0].op, 1);
  int found = 0;
  for (const OpSample& sample : hardware.time.op_samples)
    if (sample.op == "attention" && sample.shape == shape) {
      EXPECT_EQ(sample.forward.value, 0.3);
      EXPECT_EQ(sample.backward.value, 0.7);
      ++found;
    }
  EXPECT_EQ(found, 1);
}

TEST(FitHardware, StorageIsMeasuredByFormatForBytesReadAndWritten) {
  CalibrationSamples measured = samples();
  SampledPlan& stores = measured.plans.front();
  stores.plan.activations.stored = NumberFormat::int4;
  const auto bytes = static_cast<double>(storage_use(stores.plan).bytes.value);
  stores.storage = {Seconds(3e-9 * bytes), Seconds(5e-9 * bytes)};
  Plan plan = stores.plan;
  fit_hardware(measured, plan.hardware);
  StorageRates rates = storage_rates(plan);
  EXPECT_NEAR(rates.measured.at(NumberFormat::int4).quantize.value, 3e-9, 1e-15);
  EXPECT_NEAR(rates.measured.at(NumberFormat::int4).dequantize.value, 5e-9, 1e-15);
  EXPECT_NEAR(rates.unmeasured.quantize.value, 3e-9, 1e-15);  // int8 as int4 rather than as plain bytes
  plan.hardware.time.global_factor = 2.0;
  EXPECT_NEAR(storage_rates(plan).measured.at(NumberFormat::int4).quantize.value, 6e-9, 1e-15);
  plan.precision.compute = NumberFormat::bf16;  // not measured in it: by bytes, at half the bandwidth (samples())
  plan.hardware.time.global_factor = 1.0;
  EXPECT_TRUE(storage_rates(plan).measured.empty());
  EXPECT_NEAR(storage_rates(plan).unmeasured.quantize.value, 2.0 / 1e10, 1e-15);
}

TEST(FitHardware, AnUpdateOfBlockScaledMomentsHasASampleOfItsOwn) {
  CalibrationSamples measured = samples();
  SampledPlan narrow = sampled(256);
  narrow.plan.optimizer.states = NumberFormat::int8;
  narrow.optimizer = Seconds(0.7);
  measured.plans.push_back(narrow);
  Plan plan = narrow.plan, plain = small_plan(256);
  fit_hardware(measured, plan.hardware);
  plain.hardware = plan.hardware;
  const auto update = [](const Plan& of) {
    return optimizer_time(of, stage_weights(section_weights(of), stage_sections(of, 0))).value;
  };
  EXPECT_NEAR(update(plan), 0.7, 1e-9);
  EXPECT_NEAR(update(plain), 0.1, 1e-6);  // as every plain sample: the narrow one is not fitted with them
}

TEST(FitHardware, ACollectiveIsFittedForItsGroups) {
  CollectiveSamples collective{Collective::all_reduce, 2, 2, {}};
  for (const std::int64_t size : {1 << 12, 1 << 16, 1 << 20, 1 << 24}) {
    const auto bytes = static_cast<double>(size);
    collective.times.push_back({Bytes(size), Seconds(1e-5 + 1e-8 * std::sqrt(bytes) + bytes / 1e9)});
  }
  std::vector<FitQuality> qualities;
  HardwareSpec hardware = machine();
  hardware.time.collectives = {fit_collective(collective, qualities)};
  EXPECT_EQ(qualities.front().kind, "all_reduce, 2 ranks in 2 groups");
  EXPECT_EQ(qualities.front().held_out, 1);
  const double bytes = 1 << 22;
  EXPECT_NEAR(collective_cost(hardware, Collective::all_reduce, {2, 2, 1, 2}, Bytes(1 << 22)).seconds.value,
              1e-5 + 1e-8 * std::sqrt(bytes) + bytes / 1e9, 1e-9);
}

TEST(FitHardware, GroupsBesideAsManyOthersComeFirst) {
  HardwareSpec hardware = machine();
  std::vector<FitQuality> qualities;
  for (const int siblings : {1, 2}) {
    CollectiveSamples collective{Collective::all_gather, 2, siblings, {}};
    for (const std::int64_t size : {1 << 12, 1 << 16, 1 << 20})
      collective.times.push_back({Bytes(size), Seconds(static_cast<double>(siblings * size) / 1e9)});
    hardware.time.collectives.push_back(fit_collective(collective, qualities));
  }
  const auto seconds = [&](std::int64_t siblings) {
    return collective_cost(hardware, Collective::all_gather, {2, 2, 1, siblings}, Bytes(1'000'000)).seconds.value;
  };
  EXPECT_NEAR(seconds(1), 1e-3, 1e-9);
  EXPECT_NEAR(seconds(2), 2e-3, 1e-9);
}

}  // namespace
}  // namespace reckon
