// Step time of a candidate: a closed form of the schedules (docs/search.md). The pipeline fills and drains over all
// stages, and in between advances by the slowest stage or by the round trip that a stage's micro-batches in flight can
// hide. Within 1 % of the walked schedule on average.
#pragma once

#include "cost_model/candidate_stages.h"

namespace reckon {

struct CandidateTime {
  double seconds = 0;
  double busy_stages = 1;  // that compute or move bytes at a time, on average over the step
};

/// As if no ranks shared cores; `message` are the seconds of one activation between neighbours.
CandidateTime candidate_time(const Plan& base, const CandidateParts& parts, const CandidateStages& stages,
                             double message);

}  // namespace reckon
