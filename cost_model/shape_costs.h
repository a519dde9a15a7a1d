// Seconds and bytes of every section for one shape: what a rank's share of a micro-batch and of the layers costs,
// whatever the pipeline, the replicas and ZeRO do with it. Computed once for each shape and looked up by every plan of
// it: the memo that makes searching fast.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cost_model/op_cost.h"
#include "cost_model/search_space.h"
#include "cost_model/section_memory.h"
#include "cost_model/section_work.h"
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

/// A search's plan with each choice of storage. What its sections keep depends on nothing else of a shape.
class StoragePlans {
 public:
  explicit StoragePlans(const Plan& base);

  /// Valid until the next call.
  const Plan& treated(const Treatment& treatment);

 private:
  std::vector<Plan> plans_;  // by storage choice
};

class ShapeCosts {
 public:
  /// `plan` has the shape's degrees and micro-batch, one pipeline stage and no ZeRO.
  /// `storage` belongs to the same search and thread, and outlives it.
  ShapeCosts(Plan plan, StoragePlans& storage);

  const SectionMemory& memory(Section section, const Treatment& treatment);
  SectionCost& cost(Section section, const Treatment& treatment);
  Bytes token_bytes() const { return token_bytes_; }        // of one micro-batch in flight
  Bytes constant_bytes() const { return constant_bytes_; }  // for the whole run
  Bytes message_bytes() const { return message_bytes_; }    // one activation between stages

 private:
  static constexpr std::size_t kModes = 4, kBits = 9, kSections = 4, kStorages = 4;
  /// A section that keeps the same tensors costs the same, whatever treatment says so.
  struct Kept {
    KeptSet set;
    std::optional<SectionMemory> memory;
    std::optional<SectionCost> cost;
  };
  struct SectionMemo {
    SectionTimes times;  // ops only once something is priced
    std::vector<std::unique_ptr<Kept>> kept;
    std::array<Kept*, kModes * kStorages * kBits> by_treatment{};
  };

  SectionMemo& section(Section section) { return sections_[static_cast<std::size_t>(section)]; }
  Kept& kept(Section section, const Treatment& treatment);
  Kept& find_kept(Section section, const Treatment& treatment);
  const OpList& list(Section section);

  Plan plan_;
  StoragePlans& storage_;
  AttentionWork work_;
  GroupLayouts layouts_;
  OverlapLinks links_;
  StorageRates rates_;
  Bytes token_bytes_, constant_bytes_, message_bytes_;
  std::array<SectionMemo, kSections> sections_;
};

}  // namespace reckon
