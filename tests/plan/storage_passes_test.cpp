#include "plan/storage_passes.h"

#include <gtest/gtest.h>

namespace reckon {
namespace {

/// One fp32 tensor of 1000 elements, kept in 4 bits: 4000 bytes read and 516 written.
struct OneTensor {
  OneTensor() {
    Tensor tensor;
    tensor.elements = 1000;
    tensor.format = NumberFormat::fp32;
    list.tensors = {tensor};
    KeptTensor one;
    one.storage = {NumberFormat::int4, 128, ScaleFormat::bf16};
    one.bytes = Bytes(516);
    kept.kept = {one};
  }
  OpList list;
  KeptSet kept;
};

const StorageRates kRates{{Seconds(1e-9), Seconds(2e-9)}, {{NumberFormat::int4, {Seconds(3e-9), Seconds(5e-9)}}}};

TEST(StoragePasses, AFormatThatWasMeasuredHasItsOwnRates) {
  const OneTensor one;
  const StorageTimes times = storage_times(one.list, one.kept, kRates);
  EXPECT_NEAR(times.quantize.value, 3e-9 * 4516, 1e-15);
  EXPECT_NEAR(times.dequantize.value, 5e-9 * 4516, 1e-15);
}

TEST(StoragePasses, OthersHaveTheRatesOfUnmeasuredOnes) {
  OneTensor one;
  one.kept.kept[0].storage.format = NumberFormat::int8;
  const StorageTimes times = storage_times(one.list, one.kept, kRates);
  EXPECT_NEAR(times.quantize.value, 1e-9 * 4516, 1e-15);
  EXPECT_NEAR(times.dequantize.value, 2e-9 * 4516, 1e-15);
}

TEST(StoragePasses, TensorsKeptAsComputedCostNothing) {
  OneTensor one;
  one.kept.kept[0].storage.format = NumberFormat::fp32;
  EXPECT_EQ(storage_times(one.list, one.kept, kRates).quantize.value, 0.0);
}

TEST(StoragePasses, AFactorScalesAllRates) {
  StorageRates rates = kRates;
  rates *= 2.0;
  EXPECT_DOUBLE_EQ(rates.unmeasured.dequantize.value, 4e-9);
  EXPECT_DOUBLE_EQ(rates.measured.at(NumberFormat::int4).quantize.value, 6e-9);
}

TEST(StoragePasses, UseOfAPlanIsThatOfAllLayers) {
  Plan plan;
  plan.model.layers = 1;
  plan.model.hidden = 128;
  plan.model.ffn_hidden = 256;
  plan.model.heads = plan.model.kv_heads = 2;
  plan.model.head_dim = 64;
  plan.model.vocabulary = 256;
  plan.batch = {64, 1, 1};
  EXPECT_EQ(storage_use(plan).bytes, Bytes(0));
  EXPECT_TRUE(storage_use(plan).formats.empty());
  plan.activations.stored = NumberFormat::int4;
  const Bytes one = storage_use(plan).bytes;
  EXPECT_EQ(storage_use(plan).formats, std::set<NumberFormat>{NumberFormat::int4});
  plan.model.layers = 2;
  const Bytes two = storage_use(plan).bytes;
  plan.model.layers = 3;
  EXPECT_GT(two, one);
  EXPECT_EQ(storage_use(plan).bytes - two, two - one);
}

}  // namespace
}  // namespace reckon
