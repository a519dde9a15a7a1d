// The fewest devices on which a plan's model and batch can be trained.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/explanation.h"
#include "plan/plan.h"

namespace reckon {

struct SmallestPlan {
  std::int64_t devices = 0;
  PlanChange change;
};

/// Looks at 1, 2, 4, ... devices of a node, then at whole nodes, up to `most`: every division into tensor, pipeline and
/// data parallelism with context and formats as they are, micro-batches of one row, full recomputation of as few layers
/// as fit, ZeRO 1 and 3. Numbers of devices whose memory together cannot hold parameters, gradients and optimizer are
/// passed over. Nothing when none fits.
std::optional<SmallestPlan> smallest_plan(const Plan& plan, std::int64_t most);

}  // namespace reckon
