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
  if (cost.memory.fits) {
    const CandidateTime time = candidate_time(base_, parts, stages_, message);
    const Plan& plan = sharing.plan();
    const auto ranks_a_stage = static_cast<double>(plan.world_size() / plan.parallel.pipeline);
    cost.seconds = time.seconds * core_sharing(plan, ranks_a_stage * time.busy_stages);
  }
  return cost;
}

}  // namespace reckon
