#include "runtime/comm/local_communicator.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <thread>

#include "runtime/comm/shared_communicator.h"

namespace reckon {
namespace {

constexpr std::chrono::seconds kGrace{2};

struct Run {
  Run(int ranks_, const CommunicatorOptions& options_, std::function<void(Communicator&)> body_)
      : ranks(ranks_), options(options_), body(std::move(body_)) {}

  int ranks;
  CommunicatorOptions options;
  std::function<void(Communicator&)> body;
  std::shared_ptr<HostMemory> memory = thread_memory();
  std::shared_ptr<std::byte> host_block, group_block;
  std::mutex mutex;
  std::condition_variable changed;
  int returned = 0;
  std::exception_ptr failure;  // of the rank that failed first

  void run_rank(int rank);
  void finish_rank(std::exception_ptr error);
};

std::shared_ptr<std::byte> new_block(HostMemory& memory, std::size_t bytes) {
  const std::uint64_t token = memory.create_block(bytes);
  auto block = memory.attach_block(token, bytes);
  memory.forget_block(token);
  return block;
}

std::string text_of(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "unknown exception";
  }
}

void Run::finish_rank(std::exception_ptr error) {
  const std::lock_guard lock(mutex);
  ++returned;
  if (error && !failure) failure = error;
  changed.notify_all();
}

void Run::run_rank(int rank) {
  HostBoard board(host_block, ranks);
  const auto host = std::make_shared<HostRank>(rank, memory, board, options.timeout);
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  std::exception_ptr error;
  {
    const ProgressGuard guard(host);
    SharedCommunicator world(std::make_shared<SharedGroup>(
        SharedGroup{host, GroupBoard(group_block, ranks), members, members, rank, "world"}));
    try {
      body(world);
    } catch (...) {
      error = std::current_exception();
      finish_rank(error);  // first, so that this error is the one reported
      board.fail(fmt::format("rank {} failed: {}", rank, text_of(error)), ExitCode::run_failed);
    }
  }
  if (!error) finish_rank(nullptr);
}

int write_failure(std::exception_ptr failure) {
  fmt::print(stderr, "error: {}\n", text_of(failure));
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return static_cast<int>(error.exit_code());
  } catch (...) {
    return static_cast<int>(ExitCode::run_failed);
  }
}

/// A thread that cannot be ended still uses objects of our callers.
[[noreturn]] void end_process(std::exception_ptr failure, const CommunicatorOptions& options) {
  std::quick_exit(options.tell_last_failure ? options.tell_last_failure(failure) : write_failure(failure));
}

}  // namespace

void run_ranks_as_threads(int ranks, const CommunicatorOptions& options,
                          const std::function<void(Communicator& world)>& body) {
  const auto run = std::make_shared<Run>(ranks, options, body);
  run->host_block = new_block(*run->memory, HostBoard::bytes(ranks));
  run->group_block = new_block(*run->memory, GroupBoard::bytes(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([run, rank] { run->run_rank(rank); });

  std::unique_lock lock(run->mutex);
  const auto all_returned = [&] { return run->returned == ranks; };
  run->changed.wait(lock, [&] { return all_returned() || run->failure; });
  const bool complete = all_returned() || run->changed.wait_for(lock, kGrace, all_returned);
  const std::exception_ptr failure = run->failure;
  lock.unlock();
  if (!complete) end_process(failure, options);
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace reckon
