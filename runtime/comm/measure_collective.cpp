// The input of rank r at element i is (i + 3 r) % 16, so that sums over many ranks are exact in FP32.
#include "runtime/comm/measure_collective.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "runtime/comm/board.h"

namespace reckon {
namespace {

float input_of(int rank, std::int64_t i) {
  return static_cast<float>((i + 3 * rank) % 16);
}

float sum_of_inputs(int ranks, std::int64_t i) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += input_of(rank, i);
  return sum;
}

/// Buffers of one collective: `part` elements a rank, `part * ranks` the whole.
struct Buffers {
  Buffers(const Communicator& group, Collective collective, std::int64_t elements)
      : ranks(group.size()), rank(group.rank()), part(std::max<std::int64_t>(elements / ranks, 1)) {
    const std::int64_t whole = part * ranks;
    const bool gathers = collective == Collective::all_gather;
    const bool scatters = collective == Collective::reduce_scatter;
    in.resize(static_cast<std::size_t>(gathers ? part : whole));
    out.resize(static_cast<std::size_t>(scatters ? part : whole));
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = input_of(rank, static_cast<std::int64_t>(i));
  }

  int ranks, rank;
  std::int64_t part;
  std::vector<float> in, out;
};

void run_once(Communicator& group, Collective collective, Buffers& buffers) {
  const ConstBufferView in = view(std::as_const(buffers.in));
  const BufferView out = view(buffers.out);
  switch (collective) {
    case Collective::all_reduce: group.all_reduce(in, out).wait(); return;
    case Collective::all_gather: group.all_gather(in, out).wait(); return;
    case Collective::reduce_scatter: group.reduce_scatter(in, out).wait(); return;
    case Collective::all_to_all: group.all_to_all(in, out).wait(); return;
    case Collective::broadcast: group.broadcast(out, 0).wait(); return;
    case Collective::send_receive:
      if (group.size() < 2) throw std::logic_error("a message needs two ranks");
      if (group.rank() == 0) group.send(in, 1).wait();
      if (group.rank() == 1) group.receive(out, 0).wait();
      return;
  }
}

float expected_at(Collective collective, const Buffers& buffers, std::int64_t i) {
  const std::int64_t part = buffers.part;
  switch (collective) {
    case Collective::all_reduce: return sum_of_inputs(buffers.ranks, i);
    case Collective::reduce_scatter: return sum_of_inputs(buffers.ranks, buffers.rank * part + i);
    case Collective::all_gather: return input_of(static_cast<int>(i / part), i % part);
    case Collective::all_to_all: return input_of(static_cast<int>(i / part), buffers.rank * part + i % part);
    case Collective::broadcast:
    case Collective::send_receive: return input_of(0, i);
  }
  return 0;
}

std::int64_t count_wrong(Collective collective, const Buffers& buffers) {
  if (collective == Collective::send_receive && buffers.rank != 1) return 0;
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < buffers.out.size(); ++i)
    if (buffers.out[i] != expected_at(collective, buffers, static_cast<std::int64_t>(i))) ++wrong;
  return wrong;
}

}  // namespace

CollectiveMeasurement measure_collective(Communicator& group, Collective collective, Bytes bytes, int repetitions) {
  Buffers buffers(group, collective, bytes.value / bytes_of(ElementType::fp32));
  if (collective == Collective::broadcast && group.rank() == 0) buffers.out = buffers.in;
  std::vector<double> seconds;
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    group.barrier().wait();
    const std::int64_t start = monotonic_nanoseconds();
    run_once(group, collective, buffers);
    if (repetition >= 0) seconds.push_back(static_cast<double>(monotonic_nanoseconds() - start) * 1e-9);
  }
  std::vector<double> wrong{static_cast<double>(count_wrong(collective, buffers))};
  group.all_reduce(view(seconds), Reduction::maximum).wait();
  group.all_reduce(view(wrong)).wait();
  std::ranges::sort(seconds);
  return {Seconds(seconds[seconds.size() / 2]), Seconds(seconds.front()), static_cast<std::int64_t>(wrong[0])};
}

}  // namespace reckon
