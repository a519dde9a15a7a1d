// How well ranks wait: every rank computes for a while, then all sum a buffer, again and again, as a training step
// does.
//   build/cpu/bin/bench_waiting [ranks] [calls] [microseconds between calls] [bytes]
// Prints the wall time of a round beyond its computing, and the processor time of a round of all ranks. Run it alone,
// beside other programs, and with more ranks than cores; two builds are compared by running them in turns.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "runtime/comm/local_communicator.h"

namespace reckon {
namespace {

double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Works for that much processor time of its own.
void compute(double seconds) {
  const double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds;
  while (now(CLOCK_THREAD_CPUTIME_ID) < end) {
  }
}

void measure(int ranks, int calls, double between, std::int64_t bytes) {
  std::vector<double> rounds(static_cast<std::size_t>(calls));
  const double cpu_start = now(CLOCK_PROCESS_CPUTIME_ID);
  run_ranks_as_threads(ranks, {}, [&](Communicator& world) {
    std::vector<float> buffer(static_cast<std::size_t>(bytes / 4), 1.0F);
    world.barrier().wait();
    for (double& round : rounds) {
      const double start = now(CLOCK_MONOTONIC);
      compute(between);
      world.all_reduce(view(buffer), Reduction::maximum).wait();
      if (world.rank() == 0) round = now(CLOCK_MONOTONIC) - start;
    }
  });
  const double cpu = (now(CLOCK_PROCESS_CPUTIME_ID) - cpu_start) / calls;
  double sum = 0;
  for (const double round : rounds) sum += round;
  std::ranges::sort(rounds);
  fmt::print(
      "{} ranks, {} calls of {} bytes after {:.0f} us each: beyond computing median {:.1f} us, mean {:.1f} us; "
      "processor time {:.1f} us a round\n",
      ranks, calls, bytes, between * 1e6, (rounds[rounds.size() / 2] - between) * 1e6, (sum / calls - between) * 1e6,
      cpu * 1e6);
}

}  // namespace
}  // namespace reckon

int main(int argc, char** argv) {
  const auto argument = [&](int index, double otherwise) { return argc > index ? std::atof(argv[index]) : otherwise; };
  try {
    reckon::measure(static_cast<int>(argument(1, 2)), static_cast<int>(argument(2, 1000)), argument(3, 500) * 1e-6,
                    static_cast<std::int64_t>(argument(4, 65536)));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
