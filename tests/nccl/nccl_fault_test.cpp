// What a user sees when CUDA or NCCL fails under the communicator, when it hangs, and when ranks disagree: every rank
// ends in bounded time with a sentence that names call, rank, device and the library's own text.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "plan/errors.h"
#include "runtime/comm/nccl_calls.h"
#include "tests/nccl/device_ranks.h"
#include "tests/nccl/stub/device_stub.h"

namespace reckon {
namespace {

using Body = std::function<void(Communicator& world)>;

CommunicatorOptions options(double timeout_seconds) {
  CommunicatorOptions result;
  result.timeout = Seconds(timeout_seconds);
  return result;
}

/// Every rank's text; checks that all ended in time, that nothing is left over, and the exit code of the first.
std::vector<std::string> failures(int ranks, double timeout_seconds, ExitCode code, const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  const auto errors = run_on_devices(ranks, options(timeout_seconds), body);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, timeout_seconds + 20.0) << "a few seconds, on a busy machine";
  std::vector<std::string> texts;
  for (const auto& error : errors) {
    texts.push_back(text_of(error));
    EXPECT_TRUE(error) << "a rank did not notice";
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const Error& known) {
      EXPECT_EQ(known.exit_code(), code) << known.what();
    } catch (...) {
      ADD_FAILURE() << "not an error of the project: " << texts.back();
    }
  }
  EXPECT_EQ(stub::communicators_in_use(), 0) << "NCCL communicators are left over";
  return texts;
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "missing: " << part << "\nin: " << text;
}

struct FailingCall {
  std::string function;
  int nth, code;
  std::string text;  // the library's
};

class FailingCalls : public testing::TestWithParam<FailingCall> {};

/// Rank 1 meets the error itself; the others hear of it, with its rank in front.
TEST_P(FailingCalls, NameCallRankDeviceAndTheLibrarysText) {
  stub::reset(2);
  stub::fail_call(GetParam().function, 1, GetParam().nth, GetParam().code);
  const auto texts = failures(2, 10.0, ExitCode::run_failed, [](Communicator& world) {
    std::vector<float> buffer(20000, 1.0f), half(10000);
    world.all_reduce(view(buffer)).wait();
    world.reduce_scatter(view(std::as_const(buffer)), view(half)).wait();
    world.all_gather(view(std::as_const(half)), view(buffer)).wait();
    world.broadcast(view(buffer), 1).wait();
    const auto group = world.split(0, 0, "again");
    Handle handle = world.rank() == 0 ? group->send(view(half), 1) : group->receive(view(half), 0);
    handle.wait();
  });
  for (const std::string& text : texts) {
    expect_in(text, GetParam().function);
    expect_in(text, GetParam().text);
    expect_in(text, "rank 1");
    expect_in(text, "device 1");
  }
  expect_in(texts[0], "rank 1 failed: ");
}

INSTANTIATE_TEST_SUITE_P(
    All, FailingCalls,
    testing::Values(FailingCall{"cudaStreamCreateWithFlags", 1, cudaErrorMemoryAllocation, "out of memory"},
                    FailingCall{"cudaDeviceGetPCIBusId", 1, cudaErrorInvalidDevice, "CUDA error 101"},
                    FailingCall{"cudaMemset", 1, cudaErrorInvalidValue, "CUDA error 1"},
                    FailingCall{"cudaEventRecord", 5, cudaErrorIllegalAddress, "CUDA error 700"},
                    FailingCall{"cudaEventQuery", 3, cudaErrorLaunchFailure, "CUDA error 719"},
                    FailingCall{"cudaStreamWaitEvent", 2, cudaErrorIllegalAddress, "CUDA error 700"},
                    FailingCall{"ncclCommInitRankConfig", 2, ncclSystemError, "unhandled system error"},
                    FailingCall{"ncclCommSplit", 1, ncclInternalError, "NCCL error 3"},
                    FailingCall{"ncclGroupStart", 2, ncclInvalidUsage, "NCCL error 5"},
                    FailingCall{"ncclGroupEnd", 1, ncclInvalidUsage, "NCCL error 5"},
                    FailingCall{"ncclSend", 2, ncclRemoteError, "remote process exited"},
                    FailingCall{"ncclRecv", 1, ncclSystemError, "the stub was told to fail"},
                    FailingCall{"ncclAllReduce", 2, ncclUnhandledCudaError, "NCCL error 1"},
                    FailingCall{"ncclAllGather", 1, ncclInvalidArgument, "invalid argument"},
                    FailingCall{"ncclBroadcast", 1, ncclSystemError, "unhandled system error"}),
    [](const auto& instance) { return instance.param.function; });

TEST(NcclFaults, AnAsynchronousErrorEndsTheRunWithItsCallAndText) {
  stub::reset(2);
  const auto texts = failures(2, 30.0, ExitCode::run_failed, [](Communicator& world) {
    std::vector<float> buffer(100, 1.0f);
    world.all_reduce(view(buffer)).wait();
    if (world.rank() == 1) stub::report_async_error(1, ncclRemoteError);
    if (world.rank() == 0) world.barrier().wait();  // the peer never comes
    std::this_thread::sleep_for(std::chrono::seconds(1));
    world.barrier().wait();
  });
  for (const std::string& text : texts) {
    expect_in(text,
              "NCCL reports an error on rank 1, device 1 in group world (last call 1: all_reduce (sum) of 100 fp32");
    expect_in(text,
              "remote process exited or there was a network error (NCCL error 6); the stub was told to report it");
  }
}

TEST(NcclFaults, AHangOnADeviceIsEndedByTheTimeout) {
  stub::reset(3);
  const auto texts = failures(3, 2.0, ExitCode::timeout, [](Communicator& world) {
    std::vector<float> buffer(4, 1.0f);
    world.all_reduce(view(buffer)).wait();
    if (world.rank() == 1) stub::hang(1);
    world.all_reduce(view(buffer)).wait();
  });
  for (const std::string& text : texts) {
    expect_in(text, "call 2 of group world: no answer within 2 s to rank ");
    expect_in(text, "all_reduce (sum) of 4 fp32 elements");
    expect_in(text, "all its ranks have made this call, but it does not end on the devices");
  }
}

TEST(NcclFaults, ARankThatDoesNotCallIsNamed) {
  stub::reset(3);
  const auto texts = failures(3, 2.0, ExitCode::timeout, [](Communicator& world) {
    std::vector<float> buffer(4, 1.0f);
    world.all_reduce(view(buffer)).wait();
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(5));
    world.all_reduce(view(buffer)).wait();
  });
  for (const std::string& text : texts) {
    expect_in(text, "within 2 s");
    expect_in(text, "rank 1 has not made this call (it has made 1)");
  }
}

TEST(NcclFaults, CallsThatDifferAreToldApart) {
  for (const std::string fault : {"size", "kind", "reduction", "root"}) {
    stub::reset(3);
    const auto texts = failures(3, 20.0, ExitCode::run_failed, [&](Communicator& world) {
      const bool at_fault = world.rank() == 1;
      std::vector<float> buffer(fault == "size" && at_fault ? 5 : 4, 1.0f);
      if (fault == "kind" && at_fault) world.barrier().wait();
      else if (fault == "root") world.broadcast(view(buffer), at_fault ? 1 : 0).wait();
      else
        world.all_reduce(view(buffer), fault == "reduction" && at_fault ? Reduction::maximum : Reduction::sum).wait();
    });
    for (const std::string& text : texts) {
      expect_in(text, "call 1 of group world differs");
      expect_in(text, "rank 1 called ");
    }
  }
}

TEST(NcclFaults, AMessageOfAnotherSizeIsNamed) {
  stub::reset(2);
  const auto texts = failures(2, 20.0, ExitCode::run_failed, [](Communicator& world) {
    std::vector<float> four(4), three(3);
    if (world.rank() == 0) world.send(view(four), 1).wait();
    else world.receive(view(three), 0).wait();
  });
  for (const std::string& text : texts) {
    expect_in(text, "message 1 from rank 0 to rank 1 in group world differs");
    expect_in(text, "sent are 4 fp32 elements, rank 1 expects 3 fp32 elements");
  }
}

TEST(NcclFaults, WhatARankThrowsEndsTheOthersCalls) {
  stub::reset(3);
  const auto errors = run_on_devices(3, options(20.0), [](Communicator& world) {
    std::vector<float> buffer(4, 1.0f);
    world.all_reduce(view(buffer)).wait();
    if (world.rank() == 1) throw std::runtime_error("out of luck");
    world.all_reduce(view(buffer)).wait();
  });
  EXPECT_EQ(text_of(errors[1]), "out of luck");
  for (const int rank : {0, 2})
    EXPECT_EQ(text_of(errors[static_cast<std::size_t>(rank)]), "rank 1 failed: out of luck");
  EXPECT_EQ(stub::communicators_in_use(), 0);
}

TEST(NcclFaults, ARankThatLeavesEarlyIsNamed) {
  stub::reset(3);
  const auto texts = failures(3, 20.0, ExitCode::run_failed, [](Communicator& world) {
    std::vector<float> buffer(4, 1.0f);
    if (world.rank() == 1) return;
    world.all_reduce(view(buffer)).wait();
  });
  for (const std::string& text : texts) expect_in(text, "rank 1 called barrier");  // the one at the end of every rank
}

TEST(NcclFaults, AllocationOfScratchNamesTheDevice) {
  stub::reset(2);
  stub::fail_call("cudaMalloc", 1, 3, cudaErrorMemoryAllocation);  // after the group's pulse and the buffer
  const auto texts = failures(2, 20.0, ExitCode::run_failed, [](Communicator& world) {
    void* address = nullptr;
    check_cuda(cudaMalloc(&address, 400000), "cudaMalloc");
    const BufferView buffer{address, 100000, ElementType::fp32};
    try {
      world.all_reduce(buffer).wait();
    } catch (...) {
      cudaFree(address);  // unchecked: the test ends here
      throw;
    }
  });
  expect_in(texts[1], "cudaMalloc failed on rank 1, device 1: out of memory (cudaErrorMemoryAllocation, CUDA error 2)");
  expect_in(texts[0], "rank 1 failed: cudaMalloc failed on rank 1, device 1: out of memory");
}

}  // namespace
}  // namespace reckon
