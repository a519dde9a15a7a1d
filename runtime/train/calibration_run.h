// Measures what the time model wants to know of this machine: every op of plans in place, matrix products over a range
// of shapes, memory bandwidth, collectives. All ranks work at once, because they share memory and caches in a run too.
#pragma once

#include <string>
#include <vector>

#include "plan/calibration_samples.h"
#include "plan/layer_ops.h"
#include "runtime/comm/communicator.h"

namespace reckon {

/// A plan that is measured on `ranks` ranks at the same time.
struct SampledJob {
  Plan plan;
  std::int64_t ranks = 1;
};

/// Groups of `ranks` ranks measured at the same time on `together` ranks.
struct CollectiveJob {
  std::int64_t together = 2, ranks = 2;

  auto operator<=>(const CollectiveJob&) const = default;
};

struct CalibrationJobs {
  std::vector<SampledJob> plans;      // as sampled_plan made them, in training steps
  std::vector<SampledJob> attention;  // whole ones whose steps do not show what their attention costs
  std::vector<CollectiveJob> collectives;
  std::vector<GemmShape> products;
  std::int64_t computing = 1;  // ranks that measure kernels: one a core
  std::int64_t cores = 1;
  bool quick = false;

  /// Ranks needed.
  std::int64_t world_size() const;
};

/// The plan as it is sampled: the same ops on `ranks` ranks, but few layers, one micro-batch, one pipeline stage.
Plan sampled_plan(Plan plan, std::int64_t ranks);

/// Whether steps of the sampled plan do not show what attention costs in `plan`: its documents differ from step to
/// step, or `ranks` are too few to split rows as it does.
bool samples_attention_apart(const Plan& plan, std::int64_t ranks);

/// Rounds visit everything that has not settled: whose median's standard error is above 1 % (quick: 2 %), three rounds
/// at least (full: five), until the time is spent. A visit in which the machine was not quiet is repeated, at most
/// twice. Collective over jobs.world_size() ranks or more; the result is rank 0's.
CalibrationSamples calibrate(const CalibrationJobs& jobs, Communicator& world);

}  // namespace reckon
