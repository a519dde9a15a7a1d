#include "cost_model/candidate_cost.h"

#include "cost_model/candidate_time.h"
#include "plan/core_sharing.h"

namespace reckon {

CandidateCost CandidateModel::evaluate(const Candidate& candidate, Sharing& sharing, double message,
                                       ShapeCosts& shape) {
  const std::int64_t micro_batches = base_.batch.global_batch / (candidate.micro_batch * candidate.degrees.data);
  stages_.place(candidate, micro_batches);
  const CandidateParts parts{candidate, sharing, shape, micro_batches};
  CandidateCost cost{memory_.fit(parts, stages_)};
  if (cost.memory.fits)
    cost.seconds =
        step_seconds(base_, parts, stages_, message) * core_sharing(sharing.plan(), micro_batches * candidate.chunks);
  return cost;
}

}  // namespace reckon
