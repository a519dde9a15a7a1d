// A loop of independent pieces of work over several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace reckon {

/// Set while this thread works for a loop: loops inside its work run on it alone, the other cores are taken.
inline thread_local bool works_for_a_loop = false;

/// Calls work(0 .. count - 1, thread), each once, from `threads` threads. Rethrows the first exception.
template <class Work>
void in_parallel(std::size_t count, int threads, Work work) {
  if (works_for_a_loop) threads = 1;
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto loop = [&](int thread) {
    const bool before = std::exchange(works_for_a_loop, true);
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i, thread);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
    works_for_a_loop = before;
  };
  std::vector<std::jthread> others;  // joined also when no more can be started
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(loop, thread);
  loop(0);
  others.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace reckon
