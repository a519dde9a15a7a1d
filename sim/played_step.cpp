#include "sim/played_step.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/engine.h"

namespace reckon {
namespace {

/// More spans than this are not all kept; 40 bytes each.
constexpr std::int64_t kMostSpans = 10'000'000;

struct NoSpans : SpanSink {
  void on_span(const Span&, const Task&) override {}
};

/// Adds up the work of every rank.
struct WorkSums : SpanSink {
  std::vector<std::int64_t> work;
  explicit WorkSums(int ranks) : work(static_cast<std::size_t>(ranks), 0) {}
  void on_span(const Span& span, const Task& task) override {
    if (task.kind == TaskKind::work) work[static_cast<std::size_t>(span.rank)] += (span.end - span.start).value;
  }
  int largest() const { return static_cast<int>(std::max_element(work.begin(), work.end()) - work.begin()); }
};

/// Spans and sums in one pass.
struct SpansAndSums : SpanSink {
  SpanTable& spans;
  WorkSums& sums;
  SpansAndSums(SpanTable& table, WorkSums& work_sums) : spans(table), sums(work_sums) {}
  void on_span(const Span& span, const Task& task) override {
    spans.on_span(span, task);
    sums.on_span(span, task);
  }
};

std::int64_t tasks_of(const Scenario& scenario) {
  std::int64_t sum = 0;
  for (const int program : scenario.program_of_rank)
    sum += scenario.programs[static_cast<std::size_t>(program)].tasks();
  return sum;
}

void scale(SectionTimes& section, double compute, double network) {
  for (OpTime& op : section.ops) {
    op.forward *= compute;
    op.input_gradient *= compute;
    op.weight_gradient *= compute;
    for (Seconds& time : op.forward_collectives) time *= network;
    for (Seconds& time : op.backward_collectives) time *= network;
  }
  section.parameter_gather *= network;
  section.gradient_reduce *= network;
}

void scale(std::vector<Seconds>& times, double factor) {
  for (Seconds& time : times) time *= factor;
}

/// First simulated rank of each stage.
std::vector<int> one_of_each_stage(const Cluster& cluster) {
  std::vector<int> first;
  for (std::size_t rank = 0; rank < cluster.stages.size(); ++rank)
    if (rank == 0 || cluster.stages[rank] != cluster.stages[rank - 1]) first.push_back(static_cast<int>(rank));
  return first;
}

}  // namespace

int PlayedStep::rank_of_stage(int stage) const {
  return *std::find_if(kept.begin(), kept.end(),
                       [&](int rank) { return cluster.stages[static_cast<std::size_t>(rank)] == stage; });
}

OpTimes what_if(const OpTimes& times, const SimSpec& sim) {
  OpTimes scaled = times;
  const double compute = 1.0 / sim.compute_scale;
  const double network = sim.free_communication ? 0.0 : 1.0 / sim.network_scale;
  for (SectionTimes* section : {&scaled.embedding, &scaled.dense_layer, &scaled.moe_layer, &scaled.head})
    scale(*section, compute, network);
  scale(scaled.pipeline_send, network);
  scale(scaled.optimizer, compute);
  scale(scaled.gradient_reduce, network);
  scale(scaled.parameter_gather, network);
  scaled.tied_table_reduce *= network;
  scaled.storage *= compute;
  return scaled;
}

std::shared_ptr<const PlayedStep> play_step(const Plan& plan, const OpTimes& times, const ClusterOptions& options) {
  auto step = std::make_shared<PlayedStep>();
  step->times = what_if(times, plan.sim);
  step->graph = build_step_graph(plan, step->times);
  step->cluster = make_cluster(plan, step->graph, options);
  const Scenario& scenario = step->cluster.scenario;
  step->perturbation = Perturbation(plan.sim.seed, plan.sim.jitter, plan.sim.slow_ranks, scenario.ranks());
  WorkSums sums(scenario.ranks());
  if (tasks_of(scenario) <= kMostSpans) {
    step->spans = std::make_unique<SpanTable>(scenario);
    step->kept.resize(step->cluster.ranks.size());
    std::iota(step->kept.begin(), step->kept.end(), 0);
    SpansAndSums sink(*step->spans, sums);
    const EngineResult result = play(scenario, step->perturbation, sink);
    step->end = result.end;
    step->events = result.events;
  } else {  // too many to keep: find the slowest rank first, then play again and keep its spans
    const EngineResult result = play(scenario, step->perturbation, sums);
    step->end = result.end;
    step->events = result.events;
    std::set<int> kept{sums.largest()};
    for (const int rank : one_of_each_stage(step->cluster)) kept.insert(rank);
    step->kept.assign(kept.begin(), kept.end());
    step->spans = std::make_unique<SpanTable>(scenario, step->kept);
    play(scenario, step->perturbation, *step->spans);
  }
  step->slowest = sums.largest();
  return step;
}

Picoseconds play_sample(const Plan& plan, const PlayedStep& step, std::uint64_t sample) {
  const Scenario& scenario = step.cluster.scenario;
  const Perturbation perturbation(plan.sim.seed + sample, plan.sim.jitter, plan.sim.slow_ranks, scenario.ranks());
  NoSpans sink;
  return play(scenario, perturbation, sink).end;
}

Picoseconds play_without(const PlayedStep& step, const WhatIsFree& free) {
  Scenario scenario = step.cluster.scenario;
  std::vector<bool> is_free(static_cast<std::size_t>(step.graph.labels.size()), false);
  for (const int label : free.labels) is_free[static_cast<std::size_t>(label)] = true;
  for (Program& program : scenario.programs) {
    for (auto& stream : program.streams)
      for (Task& task : stream)
        if (is_free[static_cast<std::size_t>(task.label)]) task.duration = Picoseconds(0);
    if (!free.messages) continue;
    for (Wait& wait : program.waits)
      if (wait.counter >= kStreams) wait.count = 0;
  }
  if (free.overlap) scenario.overlap = {};
  NoSpans sink;
  return play(scenario, step.perturbation, sink).end;
}

}  // namespace reckon
