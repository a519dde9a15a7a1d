// A step that has been simulated: its tasks, the ranks they ran on, and when.
#pragma once

#include <memory>
#include <vector>

#include "plan/op_times.h"
#include "plan/plan.h"
#include "sim/cluster.h"
#include "sim/perturbation.h"
#include "sim/span_table.h"
#include "sim/step_graph.h"

namespace reckon {

struct PlayedStep {
  OpTimes times;  // as simulated: what-if factors applied
  StepGraph graph;
  Cluster cluster;
  Perturbation perturbation;
  std::vector<int> kept;  // simulated ranks whose spans are in `spans`: all, or the slowest and one of each stage
  std::unique_ptr<SpanTable> spans;
  int slowest = 0;  // simulated rank with the most work
  Picoseconds end;
  std::int64_t events = 0;

  bool keeps_all() const { return kept.size() == cluster.ranks.size(); }
  /// A kept rank of that stage.
  int rank_of_stage(int stage) const;
};

/// `times` with the plan's what-if factors: sim.network_scale, compute_scale, free_communication.
OpTimes what_if(const OpTimes& times, const SimSpec& sim);

/// Simulates one step of a checked and resolved plan.
std::shared_ptr<const PlayedStep> play_step(const Plan& plan, const OpTimes& times, const ClusterOptions& options = {});

/// Only the step's duration, for `sim.seed` + `sample`.
Picoseconds play_sample(const Plan& plan, const PlayedStep& step, std::uint64_t sample);

/// Parts of a step that are imagined to cost nothing.
struct WhatIsFree {
  std::vector<int> labels = {};  // tasks with these labels take no time
  bool messages = false;         // no stage waits for a message of another
  bool overlap = false;          // work and communication do not slow each other
};

/// Duration of the step without them.
Picoseconds play_without(const PlayedStep& step, const WhatIsFree& free);

}  // namespace reckon
