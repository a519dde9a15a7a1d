// What one pipeline rank does for one micro-batch and chunk: elapsed seconds of its forward and backward action, and
// how they divide into components. Rules of overlap (docs/time.md):
//  - a collective of a forward op follows the op and is exposed; blocks on a ring are passed while attention computes;
//  - in the backward of a column-parallel product (one that reduces its input gradient) the reduction overlaps with the
//    weight gradient and the repeated gather of its input with the input gradient; other collectives are exposed;
//  - ZeRO-3 gathers the next section's parameters while one is computed and reduces the previous one's gradients;
//  - without sharded gradients the last micro-batch's backward reduces them in buckets (bucket_walk.h).
// What runs beside a section is walked phase by phase (overlap_walk.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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

/// A section (the embedding, a layer, the head) with what its policy keeps and recomputes.
struct SectionWork {
  ActionTime forward, backward;
  Seconds gather, reduce;    // ZeRO, once
  std::int64_t weights = 0;  // elements on this rank
};

/// Equal neighbours of a chunk.
struct WorkRun {
  const SectionWork* work = nullptr;
  std::int64_t count = 0;
};

struct StageWork {
  std::vector<ActionTime> forward, backward;  // by chunk
  std::vector<std::vector<WorkRun>> chunks;   // their sections in model order, which lie in `sections`
  std::shared_ptr<const std::vector<SectionWork>> sections;
};

/// Elapsed seconds of one section with its storage passes and recomputation, without ZeRO's gathers and reductions.
struct SectionElapsed {
  Seconds forward, backward;
  std::vector<OverlapPhase> forward_phases, backward_phases;  // for what runs beside them
};
OverlapRules overlap_rules(const Plan& plan);
SectionElapsed section_elapsed(const Plan& plan, const OpTimes& times, const SectionTimes& section, Recompute recompute,
                               std::int64_t stage);

/// By how much a section that takes `alone` takes longer when the reduction of the section before it and then the
/// gather for the section after it go on beside it, and are waited for at its end.
Seconds section_excess(const std::vector<OverlapPhase>& phases, Seconds alone, const OverlapRules& rules,
                       Seconds reduce, Seconds gather);

/// Work of every pipeline rank. `recompute_layers` of the plan must be resolved.
std::vector<StageWork> stage_works(const Plan& plan, const OpTimes& times);

}  // namespace reckon
