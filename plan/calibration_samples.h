// What a calibration measured, before anything is fitted to it: written by the runtime, read by the cost model's fits.
#pragma once

#include <vector>

#include "plan/layer_ops.h"
#include "plan/plan.h"
#include "plan/storage_passes.h"

namespace reckon {

/// A plan in training, as it was sampled (few layers, one micro-batch, one stage).
struct SampledPlan {
  Plan plan;
  std::vector<OpSample> ops;  // of embedding, one dense layer and head, in the order of section_ops
  Seconds optimizer;          // one update
  StorageTimes storage;       // of a micro-batch, in all of its layers and tables
};

/// Attention of a plan's own documents in whole rows, measured apart from steps (runtime/train/attention_sampler.h).
struct AttentionSample {
  Op op;                   // of the plan's layers
  std::int64_t ranks = 1;  // that computed at the same time
  NumberFormat format = NumberFormat::fp32;
  Seconds forward, backward;
};

/// One measured collective; bytes as in CollectiveFit.
struct SizedTime {
  Bytes bytes;
  Seconds seconds;
};

/// One collective by size, over groups of `ranks` of which `siblings` work at the same time.
struct CollectiveSamples {
  Collective collective = Collective::all_reduce;
  int ranks = 2, siblings = 1;
  std::vector<SizedTime> times;  // ascending sizes
};

/// How undisturbed the machine was. A visit is what one group of measurements takes in a round.
struct Quietness {
  double others = 0;   // mean share of the machine that other programs (or a hypervisor) took in the visits that count
  double slowest = 1;  // slowest reference product of those visits over the fastest
  int visits = 0, repeated = 0;
  int noisy = 0;  // visits that count although they were noisy, because repeating is bounded
};

struct CalibrationSamples {
  std::vector<SampledPlan> plans;
  std::vector<AttentionSample> attention;  // of plans whose attention the sampled plans do not show
  std::vector<GemmSample> gemms;
  std::vector<CollectiveSamples> collectives;
  FlopsPerSecond fp32_peak, bf16_peak;  // fastest product seen
  BytesPerSecond bandwidth;             // of one rank while all copy
  Quietness quietness;
};

}  // namespace reckon
