// Seconds of every op of a plan, wherever they come from: estimated, calibrated or measured. An argument of the step
// model and of the simulator, so that "op times are wrong" and "overlap is wrong" can be told apart.
#pragma once

#include <string>
#include <vector>

#include "plan/hardware_spec.h"
#include "plan/layer_ops.h"
#include "plan/rank_grid.h"
#include "plan/units.h"

namespace reckon {

/// Times of one op, in the order of its op list. Collectives inside an op are kept apart, one entry per call.
struct OpTime {
  Seconds forward, input_gradient, weight_gradient;
  std::vector<Seconds> forward_collectives, backward_collectives;
  Provenance provenance = Provenance::assumed;
};

struct SectionTimes {
  OpList list;
  AttentionWork work;
  std::vector<OpTime> ops;  // parallel to list.ops
};

/// All times a step needs. Per-stage values have one entry per pipeline rank.
struct OpTimes {
  SectionTimes embedding, dense_layer, moe_layer, head;
  Seconds pipeline_send;                  // one activation (or gradient) message between neighbouring stages
  std::vector<Seconds> optimizer;         // per stage: norm, clip and update of the local shard
  std::vector<Seconds> gradient_reduce;   // per stage: all buckets, nothing overlapped
  std::vector<Seconds> parameter_gather;  // per stage: after the optimizer (ZeRO-1, 2)
  Seconds layer_gather;                   // ZeRO-3: parameters of one layer, once
  Seconds layer_reduce;                   // ZeRO-2/3: gradients of one layer, once
  Seconds quantize_per_byte;              // storage passes: seconds per byte read and written
};

}  // namespace reckon
