// What the stages of a candidate run: their layers, the micro-batches they hold in flight, and the widths at which they
// store activations.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_model/placed_layers.h"
#include "cost_model/search_space.h"
#include "cost_model/shape_costs.h"
#include "cost_model/sharing.h"

namespace reckon {

/// A candidate and what its evaluation looks up.
struct CandidateParts {
  const Candidate& candidate;
  Sharing& sharing;   // of its degrees and ZeRO stage
  ShapeCosts& shape;  // of its shape
  std::int64_t micro_batches;

  /// How a run of layers is treated on a stage that stores `bits` bits.
  Treatment treatment(const LayerRun& run, int bits) const {
    return {run.again ? candidate.recompute : Recompute::none, candidate.storage, bits};
  }
};

/// Chunk activations that a stage holds at the schedule's peak.
std::int64_t in_flight(const Candidate& candidate, std::int64_t stage, std::int64_t micro_batches);

class CandidateStages {
 public:
  explicit CandidateStages(const Plan& base) : base_(base), layers_(base.model) {}

  /// Spreads the layers and chooses AGoQ's widths where the candidate's storage is block-scaled.
  void place(const Candidate& candidate, std::int64_t micro_batches);

  PlacedLayers& layers() { return layers_; }
  const PlacedLayers& layers() const { return layers_; }
  /// Bits of stored activations; 0 as computed.
  int bits(std::int64_t stage) const { return widths_.empty() ? 0 : widths_[static_cast<std::size_t>(stage)]; }
  /// Stages between the second and the last hold no more than the second.
  bool are_alike() const { return widths_.empty() && !base_.model.is_moe(); }

 private:
  void choose_widths(const Candidate& candidate, std::int64_t micro_batches);

  const Plan& base_;
  PlacedLayers layers_;
  std::vector<int> widths_;  // by stage; empty unless block-scaled
};

}  // namespace reckon
