// Measures what the time model wants to know of this machine: every op of a plan in place, matrix products over a range
// of shapes, memory bandwidth, collectives. All ranks work at once, because they share memory and caches in a run too.
#pragma once

#include <vector>

#include "plan/hardware_spec.h"
#include "plan/layer_ops.h"
#include "plan/plan.h"
#include "runtime/comm/communicator.h"

namespace reckon {

/// Attention of a plan, see attention_sampler.h.
struct AttentionSample {
  Op op;  // of the plan's layers
  Seconds forward, backward;
  NumberFormat format = NumberFormat::fp32;
};

struct CalibrationSamples {
  std::vector<OpSample> ops;               // of the sampled plans
  std::vector<AttentionSample> attention;  // of plans whose attention the sampled plans do not show
  std::vector<GemmSample> gemms;
  std::vector<CollectiveFit> collectives;
  std::vector<Seconds> optimizer;       // one update, by sampled plan
  FlopsPerSecond fp32_peak, bf16_peak;  // fastest product seen
  BytesPerSecond bandwidth;             // of one rank while all copy
};

/// The plan as it is sampled: the same ops on `ranks` ranks, but few layers, one micro-batch, one pipeline stage.
Plan sampled_plan(Plan plan, std::int64_t ranks);

/// Whether steps of the sampled plan do not show what attention costs in `plan`: its documents differ from step to
/// step, or `ranks` are too few to split rows as it does.
bool samples_attention_apart(const Plan& plan, std::int64_t ranks);

/// Rounds visit everything in turn until `budget` is spent (three at least). A figure is the median over rounds of the
/// faster of two repetitions. `plans` are sampled ones, attention_of whole ones. Collective; the same result on all
/// ranks.
CalibrationSamples calibrate(const std::vector<Plan>& plans, Communicator& world, Seconds budget,
                             const std::vector<Plan>& attention_of = {});

}  // namespace reckon
