// From which size a sum of gradients in 8 bits (all-to-all, FP32 sum, all-gather) is faster than one FP32 all-reduce:
//   build/core/bin/bench_reduction [ranks] [repetitions] [threads|mpi, then under mpirun with 0 ranks]
// Both take turns. The last line is the measured gradients.plain_below.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "runtime/comm/make_communicator.h"
#include "runtime/train/reduce/quantized_reduction.h"

namespace reckon {
namespace {

using Clock = std::chrono::steady_clock;

/// Seconds of this rank between two barriers: those of the slowest.
template <class Run>
double seconds_of(Communicator& world, Run run) {
  world.barrier().wait();
  const Clock::time_point start = Clock::now();
  run();
  world.barrier().wait();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Times {
  double plain, quantized;
};

Times times_of(Communicator& world, std::int64_t elements, int repetitions) {
  const Storage wire{NumberFormat::int8};
  const auto parts = block_parts(elements, world.size(), wire.block);
  std::vector<float> gradients(static_cast<std::size_t>(elements), 0.5F);
  std::vector<float> own(static_cast<std::size_t>(parts[static_cast<std::size_t>(world.rank())]));
  std::vector<std::byte> workspace(static_cast<std::size_t>(reduction_workspace(wire, parts).value));
  QuantizedReduction reduction(world, wire, parts, workspace);
  const auto quantized_sum = [&] {
    reduction.start(gradients, {});
    reduction.reduce(own);
    reduction.start_gather(own);
    reduction.finish_gather();
    std::span<float> rest(gradients);
    for (int rank = 0; rank < world.size(); ++rank) {
      const auto count = static_cast<std::size_t>(parts[static_cast<std::size_t>(rank)]);
      reduction.read_part(rank, rest.first(count));
      rest = rest.subspan(count);
    }
  };
  std::vector<double> plain, quantized;
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    std::ranges::fill(gradients, 0.5F);
    const double one = seconds_of(world, [&] { world.all_reduce(view(gradients)).wait(); });
    const double other = seconds_of(world, quantized_sum);
    if (repetition < 0) continue;  // first touch
    plain.push_back(one);
    quantized.push_back(other);
  }
  return {median(plain), median(quantized)};
}

/// The smallest size from which the exchange wins at every larger one.
void measure(Communicator& world, int repetitions) {
  std::int64_t threshold = 0;
  for (std::int64_t bytes = 4096; bytes <= 16 << 20; bytes *= 2) {
    const Times times = times_of(world, bytes / 4, repetitions);
    if (times.quantized >= times.plain) threshold = 2 * bytes;
    if (world.rank() == 0)
      fmt::print("{:>9} bytes of FP32: all-reduce {:9.1f} us, in 8 bits {:9.1f} us, {:.2f}x\n", bytes,
                 times.plain * 1e6, times.quantized * 1e6, times.plain / times.quantized);
  }
  if (world.rank() != 0) return;
  if (threshold > 16 << 20) fmt::print("the exchange in 8 bits wins at none of these sizes\n");
  else fmt::print("gradients.plain_below={}\n", threshold);
}

}  // namespace
}  // namespace reckon

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2, repetitions = argc > 2 ? std::atoi(argv[2]) : 21;
  try {
    reckon::run_ranks(argc > 3 ? argv[3] : "threads", ranks, {},
                      [&](reckon::Communicator& world) { reckon::measure(world, repetitions); });
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
