// The contract over ranks that are threads of one process.
#include <gtest/gtest.h>

#include "runtime/comm/make_communicator.h"
#include "tests/comm/contract.h"

namespace reckon {
namespace {

class ThreadsContract : public testing::TestWithParam<std::tuple<ContractCheck, int>> {};

TEST_P(ThreadsContract, Holds) {
  const auto& [check, ranks] = GetParam();
  run_ranks("threads", ranks, {Seconds(20.0)}, check.run);
}

INSTANTIATE_TEST_SUITE_P(All, ThreadsContract,
                         testing::Combine(testing::ValuesIn(contract_checks()), testing::Values(1, 2, 3, 8)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param).name + std::to_string(std::get<1>(instance.param)) +
                                  "Ranks";
                         });

}  // namespace
}  // namespace reckon
