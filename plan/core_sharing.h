// Ranks of a CPU machine share its cores. Where there are more ranks than cores they take turns; where there are as
// many, whoever moves bytes beside a computation takes the time from a rank that computes.
#pragma once

#include <cstdint>
#include <string>

#include "plan/layer_ops.h"
#include "plan/plan.h"

namespace reckon {

/// Ranks that compute at the same time, at most one a core; 1 where the plan has devices of their own.
std::int64_t ranks_at_once(const Plan& plan);

/// Key of an op that was measured while that many ranks computed, because they share caches and memory bandwidth:
/// "gemm 1024x512x384, 2 ranks at once"; for one rank the op's shape_key alone.
std::string measured_shape(const Op& op, std::int64_t ranks_at_once);

/// The same for any text of a shape.
std::string beside_others(const std::string& shape, std::int64_t ranks_at_once);

/// Whether there are more ranks than cores.
bool takes_turns(const Plan& plan);

/// Factor on the time of everything that a rank does: ranks that are busy at the same time over cores, at least 1; 1
/// where cores are not shared. A stage of a pipeline that waits lends its core, so that a bubble costs less than with
/// cores enough (simplification: busy ranks are counted on average over the step, not moment by moment).
double core_sharing(const Plan& plan, double busy_ranks);

/// Slow-down of compute and communication that overlap: the hardware's factors, or 2 each (no gain, the sum of both)
/// where no core is left for moving bytes.
struct OverlapSlowdown {
  double compute = 1.0, communication = 1.0;
};
OverlapSlowdown overlap_slowdown(const Plan& plan);

}  // namespace reckon
