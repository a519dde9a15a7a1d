#include "plan/core_sharing.h"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

/// Whether the plan says how many cores its ranks share.
bool shares_cores(const Plan& plan) {
  return plan.hardware.device.is_cpu && plan.hardware.cores > 0 && plan.nodes <= 1;
}

}  // namespace

std::int64_t ranks_at_once(const Plan& plan) {
  return shares_cores(plan) ? std::min<std::int64_t>(plan.world_size(), plan.hardware.cores) : 1;
}

std::string measured_shape(const Op& op, std::int64_t ranks_at_once) {
  return beside_others(shape_key(op), ranks_at_once);
}

std::string beside_others(const std::string& shape, std::int64_t ranks_at_once) {
  return ranks_at_once <= 1 ? shape : fmt::format("{}, {} ranks at once", shape, ranks_at_once);
}

bool takes_turns(const Plan& plan) {
  return shares_cores(plan) && plan.world_size() > plan.hardware.cores;
}

double core_sharing(const Plan& plan, double busy_ranks) {
  return takes_turns(plan) ? std::max(1.0, busy_ranks / plan.hardware.cores) : 1.0;
}

OverlapSlowdown overlap_slowdown(const Plan& plan) {
  const TimeConstants& time = plan.hardware.time;
  if (shares_cores(plan) && plan.world_size() >= plan.hardware.cores) return {2.0, 2.0};
  return {time.overlap_compute_slowdown, time.overlap_communication_slowdown};
}

}  // namespace reckon
