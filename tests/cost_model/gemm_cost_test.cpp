#include "cost_model/gemm_cost.h"

#include <gtest/gtest.h>

#include "plan/errors.h"

namespace reckon {
namespace {

HardwareSpec device() {
  HardwareSpec hardware;
  hardware.device.name = "test";
  hardware.device.peak[NumberFormat::bf16] = FlopsPerSecond(300e12);
  hardware.device.memory_bandwidth = BytesPerSecond(2000e9);
  hardware.device.multiprocessors = 0;  // no grid: the three terms alone
  hardware.time.gemm[Pass::forward] = {1.25, 1.0, Seconds(5e-6), 0.1, Provenance::calibrated};
  return hardware;
}

const GemmShape kSquare{1, 4096, 4096, 4096};

TEST(GemmCost, ThreeTerms) {
  // 2 * 4096^3 FLOPs at 300 TFLOP/s times 1.25; three 4096^2 matrices of 2 bytes at 2 TB/s; 5 us.
  const double flops = 2.0 * 4096.0 * 4096.0 * 4096.0, bytes = 3.0 * 2.0 * 4096.0 * 4096.0;
  EXPECT_NEAR(gemm_cost(device(), kSquare, Pass::forward, NumberFormat::bf16).seconds.value,
              1.25 * flops / 300e12 + bytes / 2000e9 + 5e-6, 1e-12);
}

TEST(GemmCost, AMeasuredShapeIsTakenAsMeasured) {
  HardwareSpec hardware = device();
  hardware.time.gemm_samples = {{1, 4096, 4096, 4096, Pass::forward, NumberFormat::bf16, Seconds(777e-6)},
                                {1, 8192, 4096, 4096, Pass::forward, NumberFormat::bf16, Seconds(1200e-6)}};
  const CostEstimate cost = gemm_cost(hardware, kSquare, Pass::forward, NumberFormat::bf16);
  EXPECT_NEAR(cost.seconds.value, 777e-6, 1e-12);
  EXPECT_EQ(cost.provenance, Provenance::calibrated);
}

TEST(GemmCost, UtilisationIsTransferredFromNeighbours) {
  HardwareSpec hardware = device();
  const double modelled = gemm_cost(hardware, kSquare, Pass::forward, NumberFormat::bf16).seconds.value;
  hardware.time.gemm_samples = {{1, 4096, 4096, 4096, Pass::forward, NumberFormat::bf16, Seconds(1.5 * modelled)}};
  const GemmShape near{1, 4096, 5120, 4096};
  const double plain = gemm_cost(device(), near, Pass::forward, NumberFormat::bf16).seconds.value;
  const CostEstimate moved = gemm_cost(hardware, near, Pass::forward, NumberFormat::bf16);
  EXPECT_NEAR(moved.seconds.value, 1.5 * plain, 1e-12);
  EXPECT_EQ(moved.provenance, Provenance::interpolated);
}

TEST(GemmCost, OddWidthsLeaveTheFastKernels) {
  const double even = gemm_cost(device(), {1, 4096, 10944, 4096}, Pass::forward, NumberFormat::bf16).seconds.value;
  const double odd = gemm_cost(device(), {1, 4096, 10922, 4096}, Pass::forward, NumberFormat::bf16).seconds.value;
  EXPECT_GT(odd, 1.3 * even);
}

TEST(GemmCost, GridsSmallerThanTheDeviceLoseRate) {
  HardwareSpec hardware = device();
  hardware.device.multiprocessors = 108;
  const auto rate = [&](std::int64_t m) {
    const GemmShape shape{1, m, 1024, 256};
    return shape.flops() / gemm_cost(hardware, shape, Pass::forward, NumberFormat::bf16).seconds.value;
  };
  EXPECT_LT(rate(128), 0.5 * rate(16384));
}

TEST(GemmCost, MoreRowsNeverTakeLess) {
  HardwareSpec hardware = device();
  hardware.device.multiprocessors = 132;
  double last = 0.0;
  for (std::int64_t m = 64; m <= 65536; m *= 2) {
    const double seconds = gemm_cost(hardware, {1, m, 4096, 4096}, Pass::forward, NumberFormat::bf16).seconds.value;
    EXPECT_GE(seconds, last);
    last = seconds;
  }
}

TEST(GemmCost, AFormatTheDeviceLacksIsRefusedWithWhatItHas) {
  try {
    gemm_cost(device(), kSquare, Pass::forward, NumberFormat::fp8_e4m3);
    FAIL();
  } catch (const RuleError& error) {
    EXPECT_NE(std::string(error.what()).find("bf16"), std::string::npos);
  }
}

}  // namespace
}  // namespace reckon
