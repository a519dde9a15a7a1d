// Seconds and bytes of every section for one shape: what a rank's share of a micro-batch and of the layers costs,
// whatever the pipeline, the replicas and ZeRO do with it. Computed once for each shape and looked up by every plan of
// it: the memo that makes searching fast.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cost_model/overlap_walk.h"
#include "cost_model/search_space.h"
#include "cost_model/section_memory.h"
#include "plan/op_times.h"

namespace reckon {

class SectionCost {
 public:
  double forward = 0, backward = 0;  // seconds; backward with recomputation and storage passes
  std::vector<OverlapPhase> forward_phases, backward_phases;

  /// section_excess of forward and backward, remembered.
  double forward_excess(const OverlapRules& rules, double gather) {
    return excess(forward_known_, forward_phases, forward, rules, 0.0, gather);
  }
  double backward_excess(const OverlapRules& rules, double reduce, double gather) {
    return excess(backward_known_, backward_phases, backward, rules, reduce, gather);
  }

 private:
  struct Known {
    double reduce, gather, excess;
    bool reduce_between_nodes, gather_between_nodes;
  };
  static double excess(std::vector<Known>& known, const std::vector<OverlapPhase>& phases, double alone,
                       const OverlapRules& rules, double reduce, double gather);
  std::vector<Known> forward_known_, backward_known_;  // few: one for each way to share the weights out
};

/// How a section's activations are treated: recompute mode, storage choice, and its width where that is block-scaled.
struct Treatment {
  Recompute recompute = Recompute::none;
  std::size_t storage = 0;
  int bits = 0;  // 0 = as computed
};

class ShapeCosts {
 public:
  /// `plan` has the shape's degrees and micro-batch, one pipeline stage and no ZeRO.
  explicit ShapeCosts(Plan plan);

  const SectionMemory& memory(Section section, const Treatment& treatment);
  SectionCost& cost(Section section, const Treatment& treatment);
  Bytes token_bytes() const { return token_bytes_; }        // of one micro-batch in flight
  Bytes constant_bytes() const { return constant_bytes_; }  // for the whole run
  Bytes message_bytes() const { return message_bytes_; }    // one activation between stages

 private:
  static constexpr std::size_t kModes = 4, kBits = 9, kSections = 4, kStorages = 4;
  struct Cell {
    bool has_memory = false, has_cost = false;
    SectionMemory memory;
    SectionCost cost;
  };
  Cell& cell(Section section, const Treatment& treatment);
  Plan treated(const Treatment& treatment) const;
  const OpList& list(Section section);

  Plan plan_;
  AttentionWork work_;
  Bytes token_bytes_, constant_bytes_, message_bytes_;
  std::vector<std::unique_ptr<Cell>> cells_;  // made when first asked for
  std::array<std::optional<OpList>, kSections> lists_;
  std::optional<OpTimes> times_;
};

}  // namespace reckon
