// The moments of a pipeline schedule that can be a rank's memory peak: what runs, and which chunks' activations are
// alive beside it. Dominated moments are left out.
#pragma once

#include <vector>

#include "plan/pipeline_schedule.h"

namespace reckon {

struct SchedulePoint {
  ActionKind kind = ActionKind::forward;
  int chunk = 0;
  std::vector<int> alive;  // by chunk: micro-batches kept besides the running one
};

std::vector<SchedulePoint> schedule_points(ScheduleKind kind, int stages, int stage, int chunks, int micro_batches);

}  // namespace reckon
