// What one pipeline rank does for one micro-batch and chunk: elapsed seconds of its forward and backward action, and
// how they divide into components. Rules of overlap (docs/time.md):
//  - a collective of a forward op follows the op and is exposed;
//  - in the backward of a column-parallel product (one that reduces its input gradient) the reduction overlaps with the
//    weight gradient and the repeated gather of its input with the input gradient; other collectives are exposed;
//  - ZeRO-3 gathers the next section's parameters while one is computed and reduces the previous one's gradients;
//  - without sharded gradients the last micro-batch's backward reduces them in buckets as sections fill them.
// What runs beside a section is walked phase by phase (overlap_walk.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost_model/overlap_walk.h"
#include "plan/op_times.h"
#include "plan/plan.h"

namespace reckon {

/// Busy and exposed seconds by component name.
class TimeLedger {
 public:
  void add(const std::string& component, Seconds busy, Seconds exposed, double times = 1.0);
  void add(const TimeLedger& other, double times = 1.0);
  Seconds busy(const std::string& component) const;
  Seconds exposed() const;  // sum over components
  struct Entry {
    Seconds busy, exposed;
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry> entries_;
};

/// One action: its ledger's exposed seconds are its duration.
struct ActionTime {
  Seconds elapsed;
  TimeLedger ledger;
  std::vector<OverlapPhase> phases;  // of a single section: what runs together, for transfers beside it
};

struct StageWork {
  std::vector<ActionTime> forward, backward;  // by chunk
  std::vector<Seconds> last_backward;         // by chunk: of the last micro-batch, slowed by the buckets it reduces
  Seconds unreduced;                          // gradients still to be reduced when the last action ends
};

/// Layers of each chunk of rank `stage` by kind.
struct ChunkLayers {
  std::int64_t dense = 0, moe = 0, recomputed_dense = 0, recomputed_moe = 0;
  bool embedding = false, head = false;
};
std::vector<ChunkLayers> chunk_layers(const Plan& plan, std::int64_t stage);

/// Elapsed seconds of one section with its storage passes and recomputation, without ZeRO's gathers and reductions.
struct SectionElapsed {
  Seconds forward, backward;
  std::vector<OverlapPhase> forward_phases, backward_phases;  // for what runs beside them
};
OverlapRules overlap_rules(const Plan& plan);
SectionElapsed section_elapsed(const Plan& plan, const OpTimes& times, const SectionTimes& section, Recompute recompute,
                               std::int64_t stage);

/// Work of every pipeline rank. `recompute_layers` of the plan must be resolved.
std::vector<StageWork> stage_works(const Plan& plan, const OpTimes& times);

}  // namespace reckon
