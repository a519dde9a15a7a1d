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
  if (ranks_at_once <= 1) return shape_key(op);
  return fmt::format("{}, {} ranks at once", shape_key(op), ranks_at_once);
}

double core_sharing(const Plan& plan) {
  return core_sharing(plan, plan.micro_batches() * plan.parallel.chunks);
}

double core_sharing(const Plan& plan, std::int64_t actions) {
  if (!shares_cores(plan)) return 1.0;
  const double busy = static_cast<double>(actions) / static_cast<double>(actions + plan.parallel.pipeline - 1);
  return std::max(1.0, static_cast<double>(plan.world_size()) * busy / plan.hardware.cores);
}

OverlapSlowdown overlap_slowdown(const Plan& plan) {
  const TimeConstants& time = plan.hardware.time;
  if (shares_cores(plan) && plan.world_size() >= plan.hardware.cores) return {2.0, 2.0};
  return {time.overlap_compute_slowdown, time.overlap_communication_slowdown};
}

}  // namespace reckon
