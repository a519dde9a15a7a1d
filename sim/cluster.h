// Which ranks are simulated, and what connects them: turns the stages' programs into a scenario for the engine.
//
// Ranks of one stage do the same at the same time as long as nothing disturbs them, so one of each stage stands for all
// (folding). This is exact: a collective among ranks that arrive together starts at once, and every rank has its own
// share of its node's ports. With jitter or slow ranks every rank is simulated.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "sim/program.h"
#include "sim/step_graph.h"

namespace reckon {

struct Cluster {
  std::vector<std::int64_t> ranks;  // rank of the plan that each simulated rank is
  std::vector<int> stages;          // its pipeline stage
  Scenario scenario;
};

/// Needs every rank: `sim.jitter` or `sim.slow_ranks` is set.
bool is_disturbed(const SimSpec& sim);

struct ClusterOptions {
  bool unfolded = false;             // every rank, even where nothing disturbs them
  bool messages_share_links = true;  // false: messages between stages neither slow collectives nor are slowed by them
};

/// One rank of each stage, or all if `unfolded` or disturbed. Each rank has four links (in and out, inside the node and
/// between nodes); a collective uses both directions, a message one at each end.
Cluster make_cluster(const Plan& plan, const StepGraph& graph, const ClusterOptions& options);

}  // namespace reckon
