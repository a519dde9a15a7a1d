// The contract of runtime/comm over NCCL itself: one rank a GPU of this machine, as threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "runtime/comm/nccl_calls.h"
#include "tests/comm/contract.h"
#include "tests/device/device_buffer.h"
#include "tests/nccl/device_ranks.h"

namespace reckon {
namespace {

class NcclDevice : public DeviceTest, public testing::WithParamInterface<ContractCheck> {};

TEST_P(NcclDevice, Holds) {
  CommunicatorOptions options;
  options.timeout = Seconds(60.0);
  const int ranks = std::min(devices_, 8);
  RecordProperty("ranks", ranks);
  RecordProperty("nccl", nccl_version());
  for (const auto& error : run_on_devices(ranks, options, [](Communicator& world) { GetParam().run(world); }))
    EXPECT_EQ(text_of(error), "");
}

INSTANTIATE_TEST_SUITE_P(All, NcclDevice, testing::ValuesIn(contract_checks()),
                         [](const auto& instance) { return instance.param.name; });

class NcclMemory : public DeviceTest {};

TEST_F(NcclMemory, IsMeasuredAfterTheFirstCalls) {
  CommunicatorOptions options;
  const int ranks = std::min(devices_, 8);
  for (const auto& error : run_on_devices(ranks, options, [](Communicator& world) {
         EXPECT_GE(world.library_memory().value, 0);
         std::printf("rank %d: NCCL took %.1f MiB for the world's two communicators\n", world.rank(),
                     static_cast<double>(world.library_memory().value) / 1048576.0);
       }))
    EXPECT_EQ(text_of(error), "");
}

}  // namespace
}  // namespace reckon
