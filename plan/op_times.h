// Seconds of every op of a plan, wherever they come from: estimated, calibrated or measured. An argument of the step
// model and of the simulator, so that "op times are wrong" and "overlap is wrong" can be told apart.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "plan/hardware_spec.h"
#include "plan/layer_ops.h"
#include "plan/rank_grid.h"
#include "plan/ring_traffic.h"
#include "plan/storage_passes.h"
#include "plan/units.h"

namespace reckon {

/// Times of one op, in the order of its op list. Collectives inside an op are kept apart, one entry per call.
/// `forward`, `input_gradient` and `weight_gradient` include the launch floor: where the host cannot launch a section's
/// kernels as fast as the device runs them, the missing time is spread over the section's ops by their launches.
/// Ops without weights have all of their backward in `input_gradient`.
struct OpTime {
  Seconds forward, input_gradient, weight_gradient;
  std::vector<Seconds> forward_collectives, backward_collectives;
  Provenance provenance = Provenance::assumed;

  Seconds backward() const { return input_gradient + weight_gradient; }
};

struct SectionTimes {
  OpList list;
  AttentionWork work;
  std::vector<OpTime> ops;   // parallel to list.ops
  Seconds parameter_gather;  // ZeRO-3: this section's parameters of one layer (or table), once
  Seconds gradient_reduce;   // ZeRO-2/3: this section's gradients of one layer (or table), once
};

/// All times a step needs. Per-stage values have one entry per pipeline rank.
struct OpTimes {
  SectionTimes embedding, dense_layer, moe_layer, head;

  const SectionTimes& of(Section section) const;
  SectionTimes& of(Section section) { return const_cast<SectionTimes&>(std::as_const(*this).of(section)); }

  std::vector<Seconds> pipeline_send;      // edge i: one activation (or gradient) message between rank i and i + 1; the
                                           // last entry joins the last rank and the first (interleaved schedules)
  std::vector<Seconds> optimizer;          // per stage: norm, clip and update of the local shard
  std::vector<Seconds> gradient_reduce;    // per stage: all buckets of one step, nothing overlapped
  std::vector<std::int64_t> reduce_calls;  // per stage: buckets of one step
  std::vector<Seconds> parameter_gather;   // per stage: after the optimizer (ZeRO-1, 2)
  Seconds tied_table_reduce;               // all-reduce of the tied table's gradient between first and last stage
  std::vector<RingLoad> ring;              // what the ring's ranks send for one layer; for traffic, not for time
  StorageRates storage;                    // passes that store kept tensors in fewer bits
};

inline const SectionTimes& OpTimes::of(Section section) const {
  switch (section) {
    case Section::embedding: return embedding;
    case Section::dense_layer: return dense_layer;
    case Section::moe_layer: return moe_layer;
    case Section::head: return head;
  }
  throw std::logic_error("unknown section");
}

/// Elapsed time of `compute` and `communication` that start together: both run slowed by their factors until one ends,
/// the rest at full speed. Factors of 2 mean no overlap at all (sum of both), as on a CPU.
inline Seconds overlapped(Seconds compute, Seconds communication, double compute_slowdown,
                          double communication_slowdown) {
  const Seconds slow_compute = compute * compute_slowdown;
  const Seconds slow_communication = communication * communication_slowdown;
  if (slow_compute < slow_communication) {
    return slow_compute + communication - slow_compute * (1.0 / communication_slowdown);
  }
  return slow_communication + compute - slow_communication * (1.0 / compute_slowdown);
}

}  // namespace reckon
