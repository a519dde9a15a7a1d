// The project's collectives against the MPI library's own, alternating in one run, on the same buffers and sizes:
//   mpirun -n 2 --bind-to none build/cpu/bin/bench_collectives [repetitions]
// Prints the median and the fastest time of the slowest rank, how many times faster reckon's median is, and whether the
// results agree (the inputs sum exactly).
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "plan/collective.h"
#include "runtime/comm/make_communicator.h"

namespace reckon {
namespace {

/// Input and output of one collective, used by both sides.
struct Buffers {
  Buffers(Communicator& world, std::int64_t bytes)
      : part(std::max<std::int64_t>(bytes / 4 / world.size(), 1)),
        in(static_cast<std::size_t>(part * world.size())),
        out(in.size()),
        mpi_out(in.size()) {
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = static_cast<float>((i + 3 * static_cast<std::size_t>(world.rank())) % 16);
  }

  std::int64_t part;
  std::vector<float> in, out, mpi_out;
};

void run_reckon(Communicator& world, Collective collective, Buffers& buffers) {
  const ConstBufferView in = view(std::as_const(buffers.in));
  const BufferView out = view(buffers.out);
  const ConstBufferView in_part{in.address, buffers.part, in.type};
  const BufferView out_part{out.address, buffers.part, out.type};
  switch (collective) {
    case Collective::all_reduce: world.all_reduce(in, out).wait(); return;
    case Collective::all_gather: world.all_gather(in_part, out).wait(); return;
    case Collective::reduce_scatter: world.reduce_scatter(in, out_part).wait(); return;
    default: world.all_to_all(in, out).wait();
  }
}

void run_mpi(Communicator& world, Collective collective, Buffers& buffers) {
  const int part = static_cast<int>(buffers.part);
  const float* in = buffers.in.data();
  float* out = buffers.mpi_out.data();
  switch (collective) {
    case Collective::all_reduce:
      MPI_Allreduce(in, out, part * world.size(), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      return;
    case Collective::all_gather: MPI_Allgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD); return;
    case Collective::reduce_scatter:
      MPI_Reduce_scatter_block(in, out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      return;
    default: MPI_Alltoall(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
  }
}

/// Time of the slowest rank.
template <class Run>
double timed(Run run) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  run();
  double seconds = MPI_Wtime() - start;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void compare(Communicator& world, Collective collective, std::int64_t bytes, int repetitions) {
  Buffers buffers(world, bytes);
  std::vector<double> ours, theirs;
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    const double own = timed([&] { run_reckon(world, collective, buffers); });
    const double other = timed([&] { run_mpi(world, collective, buffers); });
    if (repetition < 0) continue;  // first touch
    ours.push_back(own);
    theirs.push_back(other);
  }
  const bool same = buffers.out == buffers.mpi_out;
  if (world.rank() != 0) return;
  fmt::print("{:14} {:>9} B  reckon {:10.1f} us (fastest {:9.1f})  MPI {:10.1f} us (fastest {:9.1f})  {:5.2f}x  {}\n",
             name_of(collective), bytes, median(ours) * 1e6, *std::ranges::min_element(ours) * 1e6,
             median(theirs) * 1e6, *std::ranges::min_element(theirs) * 1e6, median(theirs) / median(ours),
             same ? "same result" : "RESULTS DIFFER");
}

}  // namespace
}  // namespace reckon

int main(int argc, char** argv) {
  using reckon::Collective;
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 21;
  try {
    reckon::run_ranks("mpi", 0, {}, [&](reckon::Communicator& world) {
      for (const Collective collective :
           {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all})
        for (const std::int64_t bytes : {1024, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20})
          reckon::compare(world, collective, bytes, repetitions);
    });
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
