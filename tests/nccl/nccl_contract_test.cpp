// The contract of runtime/comm over the NCCL communicator, with the stub in place of CUDA and NCCL.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/comm/contract.h"
#include "tests/nccl/device_ranks.h"
#include "tests/nccl/stub/device_stub.h"

namespace reckon {
namespace {

void expect_contract(const ContractCheck& check, int ranks, const CommunicatorOptions& options) {
  stub::reset(ranks);
  const auto errors = run_on_devices(ranks, options, [&](Communicator& world) { check.run(world); });
  for (const auto& error : errors) EXPECT_EQ(text_of(error), "");
  EXPECT_EQ(stub::bytes_in_use(), 0) << "device memory is left over";
  EXPECT_EQ(stub::communicators_in_use(), 0) << "NCCL communicators are left over";
}

std::string name_of_instance(const testing::TestParamInfo<std::tuple<ContractCheck, int>>& instance) {
  return std::get<0>(instance.param).name + std::to_string(std::get<1>(instance.param)) + "Ranks";
}

class NcclContract : public testing::TestWithParam<std::tuple<ContractCheck, int>> {};

TEST_P(NcclContract, Holds) {
  const auto& [check, ranks] = GetParam();
  CommunicatorOptions options;
  options.timeout = Seconds(60.0);
  expect_contract(check, ranks, options);
}

INSTANTIATE_TEST_SUITE_P(All, NcclContract,
                         testing::Combine(testing::ValuesIn(contract_checks()), testing::Values(1, 2, 3, 8)),
                         name_of_instance);

/// What holds of the contract when NCCL adds in its own order and nothing tells waiting from moving.
std::vector<ContractCheck> checks_of_library_sums() {
  std::vector<ContractCheck> checks = contract_checks();
  std::erase_if(checks, [](const ContractCheck& check) {
    return check.name == "SumsAddInRankOrderWhateverTheSharding" || check.name == "Bf16SumsAccumulateInFp32" ||
           check.name == "WaitingForPeersIsToldApartFromMoving";
  });
  return checks;
}

class NcclLibrarySums : public testing::TestWithParam<std::tuple<ContractCheck, int>> {};

TEST_P(NcclLibrarySums, Holds) {
  const auto& [check, ranks] = GetParam();
  CommunicatorOptions options;
  options.timeout = Seconds(60.0);
  options.library_sums = true;
  options.separate_waiting = false;
  expect_contract(check, ranks, options);
}

INSTANTIATE_TEST_SUITE_P(All, NcclLibrarySums,
                         testing::Combine(testing::ValuesIn(checks_of_library_sums()), testing::Values(4)),
                         name_of_instance);

}  // namespace
}  // namespace reckon
