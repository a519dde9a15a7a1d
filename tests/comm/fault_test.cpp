// What users see when a rank misbehaves: each fault runs in processes of its own. The run must end by itself, non-zero,
// in time, with a message that names the rank, the call and the sizes, and no process may stay behind.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "runtime/comm/mpi_communicator.h"

namespace reckon {
namespace {

struct Outcome {
  int exit_code = 0;
  double seconds = 0;
  std::string output;
};

Outcome run_command(const std::string& command) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen failed");
  std::array<char, 4096> text;
  while (std::fgets(text.data(), text.size(), pipe) != nullptr) outcome.output += text.data();
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

/// Running processes whose command line holds `mark`; ended ones that nobody has collected do not count.
int processes_with(const std::string& mark) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().find(mark) != std::string::npos && entry.path().filename() != "self" &&
        entry.path().filename() != "thread-self")
      ++found;
  }
  return found;
}

constexpr double kTimeoutSeconds = 1.0;

struct Case {
  std::string backend, fault;
  int exit_code;                     // 0 = any but success: the launcher decides
  std::vector<std::string> phrases;  // each must be in the output
};

std::string command_of(const Case& fault, const std::string& mark) {
  const std::string program =
      std::string(RECKON_BINARY_DIR) + "/comm_fault " + fault.backend + " 3 1 " + fault.fault + " " + mark;
  if (fault.backend == "threads") return program;
  return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none "
         "--mca mpi_yield_when_idle 1 --mca btl ^tcp -n 3 " +
         program;
}

class Fault : public testing::TestWithParam<Case> {};

TEST_P(Fault, EndsTheRunWithAMessageAndLeavesNothing) {
  const Case& fault = GetParam();
  if (fault.backend == "mpi" && !mpi_is_built_in()) GTEST_SKIP() << "this build has no MPI";
  const std::string mark = "mark-" + std::to_string(getpid()) + "-" + fault.backend + "-" + fault.fault;
  const Outcome outcome = run_command(command_of(fault, mark));
  if (fault.exit_code != 0) {
    EXPECT_EQ(outcome.exit_code, fault.exit_code) << outcome.output;
  }
  EXPECT_NE(outcome.exit_code, 0) << outcome.output;
  EXPECT_LT(outcome.seconds, kTimeoutSeconds + 15.0) << "a few seconds, on a busy machine";
  for (const std::string& phrase : fault.phrases)
    EXPECT_NE(outcome.output.find(phrase), std::string::npos) << "missing: " << phrase << "\n" << outcome.output;
  EXPECT_EQ(processes_with(mark), 0);
}

TEST(StuckRank, KeepsTheCallersObjects) {
  const std::string program = std::string(RECKON_BINARY_DIR) + "/comm_fault threads 3 1 ";
  const std::string gone = "the caller's objects are gone";
  EXPECT_NE(run_command(program + "throw").output.find(gone), std::string::npos);
  const Outcome stuck = run_command(program + "sleep");
  EXPECT_EQ(stuck.output.find(gone), std::string::npos) << stuck.output;
  EXPECT_EQ(stuck.exit_code, 7);
}

std::vector<Case> all_cases() {
  const std::string call = "call 3 of group world", four = "all_reduce (sum) of 4 fp32 elements";
  std::vector<Case> cases;
  for (const std::string backend : {"threads", "mpi"}) {
    cases.push_back(
        {backend, "size", 6, {call, "rank 1 called all_reduce (sum) of 5 fp32 elements", "called " + four}});
    cases.push_back(
        {backend, "large-size", 6, {call, "all_reduce (sum) of 200000 fp32", "all_reduce (sum) of 100000 fp32"}});
    cases.push_back({backend, "kind", 6, {call, "rank 1 called barrier", "called " + four}});
    cases.push_back({backend, "reduction", 6, {call, "rank 1 called all_reduce (maximum) of 4 fp32 elements"}});
    cases.push_back({backend, "root", 6, {call, "rank 1 called broadcast of 4 fp32 elements from rank 1"}});
    cases.push_back({backend, "message", 6, {"message 1 from rank 0 to rank 1", "sent are 4 fp32", "expects 3 fp32"}});
    cases.push_back({backend, "sleep", 7, {call, "within 1 s", four, "rank 1 has not made this call (it has made 2)"}});
    cases.push_back({backend, "sleep-message", 7, {"within 1 s", "rank 1 has not made"}});
    cases.push_back({backend, "throw", 6, {"out of luck"}});
  }
  cases.push_back({"threads", "leave", 6, {call, "rank 1 left the group", four}});
  cases.push_back({"mpi", "leave", 6, {call, "rank 1 called barrier", four}});  // the barrier at the end of every rank
  cases.push_back({"mpi", "exit", 0, {call, "rank 1 has died", four}});
  cases.push_back({"mpi", "kill", 0, {"rank 1"}});  // mpirun may be first to tell
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Fault, testing::ValuesIn(all_cases()), [](const auto& instance) {
  std::string name = instance.param.backend + "_" + instance.param.fault;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace reckon
