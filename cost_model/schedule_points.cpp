#include "cost_model/schedule_points.h"

#include <algorithm>

namespace reckon {

namespace {

/// Everything alive in `a` is alive in `b` too, beside the same work.
bool dominated(const SchedulePoint& a, const SchedulePoint& b) {
  if (a.kind != b.kind || a.chunk != b.chunk) return false;
  for (std::size_t i = 0; i < a.alive.size(); ++i)
    if (a.alive[i] > b.alive[i]) return false;
  return true;
}

void add_point(std::vector<SchedulePoint>& points, SchedulePoint point) {
  for (const SchedulePoint& other : points)
    if (dominated(point, other)) return;
  std::erase_if(points, [&](const SchedulePoint& other) { return dominated(other, point); });
  points.push_back(std::move(point));
}

}  // namespace

std::vector<SchedulePoint> schedule_points(ScheduleKind kind, int stages, int stage, int chunks, int micro_batches) {
  if (kind != ScheduleKind::interleaved) {
    const int in_flight = kind == ScheduleKind::gpipe ? micro_batches : std::min(micro_batches, stages - stage);
    return {{ActionKind::forward, 0, {in_flight - 1}}, {ActionKind::backward, 0, {in_flight - 1}}};
  }
  // Warm-up takes less than two rounds of `stages` micro-batches, and the steady state repeats every round.
  const int walked = std::min(micro_batches, 4 * stages);
  std::vector<SchedulePoint> points;
  std::vector<int> alive(static_cast<std::size_t>(chunks), 0);
  for (const Action& action : pipeline_actions(kind, stages, stage, chunks, walked)) {
    int& own = alive[static_cast<std::size_t>(action.chunk)];
    if (action.kind == ActionKind::backward) --own;
    add_point(points, {action.kind, action.chunk, alive});
    if (action.kind == ActionKind::forward) ++own;
  }
  return points;
}

}  // namespace reckon
