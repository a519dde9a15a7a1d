// How many events a second the engine handles: prints one line for each size. Not a test; machines differ.
#include <chrono>
#include <cstdio>

#include "sim/engine.h"

namespace {

using namespace reckon;

struct Nothing : SpanSink {
  void on_span(const Span&, const Task&) override {}
};

/// Ranks in groups of 8 that meet after every fourth piece of work, with jitter, as tensor parallel layers do.
Scenario tensor_parallel_ranks(int ranks, int layers) {
  Program program;
  Wait last{0, 0};
  for (int layer = 0; layer < layers; ++layer) {
    for (int op = 0; op < 4; ++op) {
      Task task;
      task.duration = Picoseconds(100'000'000 + 1'000'000 * op);
      last = program.add(0, task, {op == 0 ? last : Wait{}});
    }
    Task gather;
    gather.kind = TaskKind::transfer;
    gather.duration = Picoseconds(20'000'000);
    last = program.add(1, gather, {last});
  }
  Scenario scenario;
  scenario.programs.push_back(program);
  scenario.program_of_rank.assign(static_cast<std::size_t>(ranks), 0);
  scenario.ports = 1;
  scenario.link_capacities.assign(static_cast<std::size_t>(ranks), 1.0);
  scenario.overlap = {1.15, 1.1};
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank % 8 == 0) scenario.communicators.emplace_back();
    scenario.communicators.back().members.push_back({rank, 1});
    scenario.communicators.back().links.push_back(rank);
    scenario.communicator_of_port.push_back(rank / 8);
  }
  return scenario;
}

}  // namespace

int main() {
  for (const int ranks : {8, 256, 16384}) {
    const Scenario scenario = tensor_parallel_ranks(ranks, 4'000'000 / ranks / 5);
    const Perturbation jitter(1, 0.05, {}, ranks);
    Nothing sink;
    const auto start = std::chrono::steady_clock::now();
    const EngineResult result = play(scenario, jitter, sink);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%6d ranks: %8lld events in %.3f s: %.2f million events/s\n", ranks,
                static_cast<long long>(result.events), seconds, static_cast<double>(result.events) / seconds / 1e6);
  }
}
