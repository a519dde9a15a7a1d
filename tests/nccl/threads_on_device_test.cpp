// The contract of runtime/comm over ranks that are threads and share one device, with the stub in place of CUDA.
#include <gtest/gtest.h>

#include "runtime/comm/local_communicator.h"
#include "runtime/comm/nccl_staging.h"
#include "tests/comm/contract.h"
#include "tests/nccl/stub/device_stub.h"

namespace reckon {
namespace {

class ThreadsOnDevice : public testing::TestWithParam<std::tuple<ContractCheck, int>> {};

TEST_P(ThreadsOnDevice, KeepTheContract) {
  const auto& [check, ranks] = GetParam();
  stub::reset(1);
  run_ranks_as_threads(ranks, {}, [&, run = check.run](Communicator& world) { run(*staged(world)); });
  EXPECT_EQ(stub::bytes_in_use(), 0) << "device memory is left over";
}

INSTANTIATE_TEST_SUITE_P(All, ThreadsOnDevice,
                         testing::Combine(testing::ValuesIn(contract_checks()), testing::Values(1, 2, 3, 8)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param).name + std::to_string(std::get<1>(instance.param)) +
                                  "Ranks";
                         });

/// Four floats on the device.
struct DeviceFloats {
  void* address = nullptr;
  explicit DeviceFloats(float value) {
    cudaMalloc(&address, 4 * sizeof(float));
    const std::vector<float> values(4, value);
    cudaMemcpy(address, values.data(), 4 * sizeof(float), cudaMemcpyDefault);
  }
  ~DeviceFloats() { cudaFree(address); }
  float first() const {
    float value = 0;
    cudaMemcpy(&value, address, sizeof(float), cudaMemcpyDefault);
    return value;
  }
};

TEST(ThreadsOnDevice, SumsAreMadeThereAndHostBuffersStayAllowed) {
  stub::reset(1);
  run_ranks_as_threads(3, {}, [](Communicator& world) {
    const DeviceFloats values(static_cast<float>(world.rank() + 1));
    world.all_reduce(BufferView{values.address, 4, ElementType::fp32}).wait();
    EXPECT_EQ(values.first(), 6.0f);
    double host[] = {1.0};
    world.all_reduce(view(host)).wait();
    EXPECT_EQ(host[0], 3.0);
  });
  EXPECT_EQ(stub::calls_of("cudaLaunchHostFunc"), 3);  // a part of the sum on every rank: kernels, played by the stub
}

}  // namespace
}  // namespace reckon
