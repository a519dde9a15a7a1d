// What one section (the embedding, a layer, the head) costs a rank for one micro-batch: its forward and backward, with
// storage passes and recomputation, without ZeRO's gathers and reductions. Rules of overlap (docs/time.md):
//  - a collective of a forward op follows the op and is exposed; blocks on a ring are passed while attention computes;
//  - in the backward of a column-parallel product (one that reduces its input gradient) the reduction overlaps with the
//    weight gradient and the repeated gather of its input with the input gradient; other collectives are exposed.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_model/op_cost.h"
#include "cost_model/overlap_walk.h"
#include "cost_model/time_ledger.h"
#include "plan/kept_tensors.h"
#include "plan/op_times.h"
#include "plan/plan.h"

namespace reckon {

/// Which groups leave the node, and how much what overlaps is slowed.
class OverlapLinks {
 public:
  explicit OverlapLinks(const Plan& plan);

  bool between_nodes(Group group) const { return layouts_[group].nodes > 1; }
  const OverlapRules& rules() const { return rules_; }

 private:
  GroupLayouts layouts_;
  OverlapRules rules_;
};

/// One action: its ledger's exposed seconds are its duration.
struct ActionTime {
  Seconds elapsed;
  TimeLedger ledger;
  std::vector<OverlapPhase> phases;  // of a single section: what runs together, for transfers beside it
};

struct SectionWork {
  ActionTime forward, backward;
  Seconds gather, reduce;    // ZeRO, once
  std::int64_t weights = 0;  // elements on this rank
};

enum class Ledgers { none, kept };

/// `rates` as in OpTimes; `kept` is what the section keeps and recomputes. Leaves `weights` to the caller.
SectionWork section_work(const OverlapLinks& links, const StorageRates& rates, const SectionTimes& section,
                         const KeptSet& kept, Ledgers ledgers);

}  // namespace reckon
