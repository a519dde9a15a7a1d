#include "cost_model/collective_cost.h"

#include <gtest/gtest.h>

namespace reckon {
namespace {

HardwareSpec nvlink_box() {
  HardwareSpec hardware;
  hardware.devices_per_node = 8;
  hardware.intra_node = {BytesPerSecond(300e9), Seconds(2e-6), true};
  hardware.inter_node = {BytesPerSecond(25e9), Seconds(5e-6), true};
  return hardware;
}

CollectiveFit all_gather_fit() {
  CollectiveFit fit;
  fit.collective = Collective::all_gather;
  fit.ranks_per_node = 8;
  fit.alpha = Seconds(15e-6);
  fit.gamma_seconds_per_sqrt_byte = 8.7e-9;
  fit.bandwidth = BytesPerSecond(248e9);
  fit.provenance = Provenance::calibrated;
  return fit;
}

const GroupLayout kNode{8, 8, 1, 1};

TEST(CollectiveCost, FitIsAlphaPlusRootPlusBytesOverBandwidth) {
  HardwareSpec hardware = nvlink_box();
  hardware.time.collectives = {all_gather_fit()};
  // 256 MiB: 15 us + 8.7e-9 * 16384 s + 268435456 / 248e9 s = 15 + 142.5408 + 1082.4010 us
  const CostEstimate cost = collective_cost(hardware, Collective::all_gather, kNode, Bytes(268435456));
  EXPECT_NEAR(cost.seconds.value, 1239.9418e-6, 1e-10);
  EXPECT_EQ(cost.provenance, Provenance::calibrated);
}

TEST(CollectiveCost, AnotherGroupSizeKeepsTheBusBandwidth) {
  HardwareSpec hardware = nvlink_box();
  CollectiveFit fit = all_gather_fit();
  fit.alpha = Seconds(0.0);
  fit.gamma_seconds_per_sqrt_byte = 0.0;
  hardware.time.collectives = {fit};
  // Wire share of 8 ranks is 7/8, of 2 ranks 1/2: 1 GB takes 1e9 / 248e9 * (1/2) / (7/8).
  const CostEstimate cost = collective_cost(hardware, Collective::all_gather, {2, 2, 1, 1}, Bytes(1'000'000'000));
  EXPECT_NEAR(cost.seconds.value, 1e9 / 248e9 * 0.5 / 0.875, 1e-9);
  EXPECT_EQ(cost.provenance, Provenance::interpolated);
}

TEST(CollectiveCost, LargeMessagesAcrossNodesRunAtThePortsRate) {
  // 2 nodes of 8: all 8 ports carry the ring, 8 * 25 * 0.94 = 188 GB/s, below the fabric's 0.73 * 300 = 219 GB/s.
  const CostEstimate cost = collective_cost(nvlink_box(), Collective::all_gather, {16, 8, 2, 1}, Bytes(16'000'000'000));
  const double transfer = 16e9 * 15.0 / 16.0 / 188e9;
  EXPECT_GT(cost.seconds.value, transfer);
  EXPECT_LT(cost.seconds.value, transfer * 1.01);
}

TEST(CollectiveCost, SiblingsShareTheNodesPorts) {
  // One rank per node: alone or with seven siblings, it has one port's worth of bandwidth; with 16 siblings on 8 ports,
  // half of it.
  const Bytes bytes(8'000'000'000);
  const HardwareSpec hardware = nvlink_box();
  const double alone = collective_cost(hardware, Collective::all_gather, {4, 1, 4, 1}, bytes).seconds.value;
  const double eight = collective_cost(hardware, Collective::all_gather, {4, 1, 4, 8}, bytes).seconds.value;
  const double sixteen = collective_cost(hardware, Collective::all_gather, {4, 1, 4, 16}, bytes).seconds.value;
  EXPECT_DOUBLE_EQ(alone, eight);
  EXPECT_NEAR(sixteen / eight, 2.0, 0.01);
}

TEST(CollectiveCost, MoreBandwidthOrFewerBytesNeverSlow) {
  HardwareSpec slow = nvlink_box(), fast = nvlink_box();
  fast.intra_node.bandwidth = BytesPerSecond(600e9);
  fast.inter_node.bandwidth = BytesPerSecond(50e9);
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                      Collective::all_to_all, Collective::send_receive}) {
    for (const GroupLayout& layout :
         {GroupLayout{2, 2, 1, 1}, kNode, GroupLayout{16, 8, 2, 1}, GroupLayout{8, 1, 8, 8}}) {
      double last = 0.0;
      for (std::int64_t bytes = 1; bytes < (std::int64_t{1} << 34); bytes *= 4) {
        const double seconds = collective_cost(slow, collective, layout, Bytes(bytes)).seconds.value;
        EXPECT_GE(seconds, last);
        EXPECT_LE(collective_cost(fast, collective, layout, Bytes(bytes)).seconds.value, seconds);
        last = seconds;
      }
    }
  }
}

TEST(CollectiveCost, AGroupOfOneIsFree) {
  EXPECT_EQ(collective_cost(nvlink_box(), Collective::all_reduce, {1, 1, 1, 1}, Bytes(1000)).seconds.value, 0.0);
}

}  // namespace
}  // namespace reckon
