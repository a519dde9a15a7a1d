// The contract over MPI processes; started by mpirun. The argument "messages" keeps ranks from using shared memory. A
// test program of its own, because MPI is initialised once.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "runtime/comm/make_communicator.h"
#include "tests/comm/contract.h"

namespace reckon {
namespace {

Communicator* world_of_this_process = nullptr;  // set by main before the tests run

class MpiContract : public testing::TestWithParam<ContractCheck> {};

TEST_P(MpiContract, Holds) {
  GetParam().run(*world_of_this_process);
}

INSTANTIATE_TEST_SUITE_P(All, MpiContract, testing::ValuesIn(contract_checks()),
                         [](const auto& instance) { return instance.param.name; });

/// Ranks other than 0 print failures only.
class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name(), result.line_number(), result.summary());
  }

 private:
  int rank_;
};

int run_tests(Communicator& world) {
  world_of_this_process = &world;
  if (world.rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter(world.rank()));
  }
  std::array<std::int64_t, 1> failed{RUN_ALL_TESTS() != 0};
  world.all_reduce(view(failed)).wait();
  if (world.rank() == 0 && failed[0] != 0)
    std::fprintf(stderr, "tests failed on %d ranks\n", static_cast<int>(failed[0]));
  return failed[0] != 0;
}

}  // namespace
}  // namespace reckon

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  int result = 1;
  try {
    const bool messages = argc > 1 && std::string(argv[1]) == "messages";  // as between hosts
    reckon::run_ranks("mpi", 0, {reckon::Seconds(20.0), !messages},
                      [&](reckon::Communicator& world) { result = reckon::run_tests(world); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return result;
}
