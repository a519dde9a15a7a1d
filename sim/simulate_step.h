// Prediction of a step by events: the plan's ops and schedule played on a modelled cluster (docs/simulator.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/op_times.h"
#include "plan/plan.h"
#include "plan/step_profile.h"
#include "sim/memory_overflow.h"
#include "sim/memory_timeline.h"
#include "sim/played_step.h"
#include "sim/step_breakdown.h"

namespace reckon {

struct SimulationOptions {
  bool unfolded = false;  // simulate every rank even where identical ranks can stand for each other
  int samples = 1;        // with sim.jitter: independent steps, with seeds sim.seed, sim.seed + 1, ...
  int threads = 1;        // that simulate samples side by side; no effect on the result
  std::optional<Bytes> memory_limit = std::nullopt;  // empty: the plan's, or the device's memory without its context
};

struct Simulation {
  StepProfile profile;                             // source simulated
  std::vector<TimeComponent> critical_path;        // seconds by component, largest first; empty when too large to keep
  std::vector<Seconds> step_samples;               // sorted; one entry without jitter
  std::vector<MemoryTimeline> memory;              // one per stage
  std::optional<RefusedAllocation> out_of_memory;  // the first allocation that does not fit, over all stages
  std::int64_t events = 0, simulated_ranks = 0;
  std::shared_ptr<const PlayedStep> step;  // for write_trace, schedule_svg and explain
};

/// `predicted` is the closed form's record of a checked and resolved plan. The simulation takes from it the plan and
/// what events do not change: parameters, FLOPs, bytes of parameters, gradients, optimizer and communication buffers.
/// `times` has an entry for each of the plan's stages. With sim.jitter or sim.slow_ranks every rank is simulated,
/// otherwise one of each stage, with the same result.
Simulation simulate_step(const StepProfile& predicted, const OpTimes& times, const SimulationOptions& options = {});

}  // namespace reckon
