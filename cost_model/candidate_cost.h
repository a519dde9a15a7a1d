// Memory and step time of one candidate of a search in about a microsecond, from the memoised costs of its shape
// (shape_costs.h) and of the way it is shared out (sharing.h). The best candidates are predicted again in full.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cost_model/candidate_memory.h"
#include "cost_model/candidate_stages.h"

namespace reckon {

struct CandidateCost {
  MemoryFit memory;
  double seconds = 0;  // step; only when it fits
};

class CandidateModel {
 public:
  CandidateModel(const Plan& base, Bytes limit) : base_(base), storage_(base), stages_(base), memory_(limit) {}

  /// `sharing` belongs to the candidate's degrees and ZeRO stage, `shape` to its shape. `message` in seconds.
  CandidateCost evaluate(const Candidate& candidate, Sharing& sharing, double message, ShapeCosts& shape);

  /// For the shapes that its candidates are made of.
  StoragePlans& storage() { return storage_; }

  /// Layers that each stage of the candidate evaluated last has to recompute.
  std::vector<std::int64_t> recomputed_layers() const { return stages_.layers().recomputed(); }

 private:
  const Plan& base_;
  StoragePlans storage_;
  CandidateStages stages_;
  CandidateMemory memory_;
};

}  // namespace reckon
