#include "cli/page_parts.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "report/write_console.h"
#include "sim/streams.h"

namespace reckon {

namespace {

constexpr std::size_t kMostBoxes = 6000;  // a browser draws so many at once without a wait
constexpr std::size_t kIntervals = 400;   // of a memory curve: about one for every two pixels

enum Kind { kForward, kBackward, kStateWork, kOther, kNetwork, kIdle };

int work_kind(std::string_view component) {
  if (component.starts_with("forward.")) return kForward;
  if (component.starts_with("backward.") || component.starts_with("recompute.")) return kBackward;
  return component == "optimizer" ? kStateWork : kOther;
}

/// Boxes of one stage: runs of tasks that the eye takes for one thing are one box.
class StageBoxes {
 public:
  StageBoxes(const PlayedStep& step, int stage) : step_(step), stage_(stage), rank_(step.rank_of_stage(stage)) {}

  std::vector<ScheduleBox> boxes() {
    for (int stream = 0; stream < kStreams; ++stream)
      for (const Span& span : step_.spans->spans(rank_, stream)) add(span, stream);
    return std::move(boxes_);
  }

 private:
  void add(const Span& span, int stream) {
    const TaskNote& note = step_.graph.stages[static_cast<std::size_t>(stage_)]
                               .notes[static_cast<std::size_t>(stream)][static_cast<std::size_t>(span.task)];
    if (stream != kCompute) {
      if (span.start > span.arrival) join({stage_, kIdle, -1, 0, to_seconds(span.arrival), to_seconds(span.start)});
      if (span.end > span.start) join({stage_, kNetwork, -1, 0, to_seconds(span.start), to_seconds(span.end)});
      return;
    }
    const int kind = work_kind(step_.graph.labels.name(step_.spans->task(span).label));
    if (span.end > span.start)
      join({stage_, kind, note.micro_batch, std::max(0, note.chunk), to_seconds(span.start), to_seconds(span.end)});
  }

  /// Appends, or lengthens the last box: work on one micro-batch is one box, with the collectives inside it; transfers
  /// are joined where the eye could not see the gap.
  void join(const ScheduleBox& box) {
    const Seconds visible = to_seconds(step_.end) / 2000.0;
    if (!boxes_.empty()) {
      ScheduleBox& last = boxes_.back();
      const bool same = last.kind == box.kind && last.micro_batch == box.micro_batch && last.chunk == box.chunk;
      const bool near = box.micro_batch >= 0 || box.start - last.end < visible;
      if (same && box.start >= last.start && near) {
        last.end = std::max(last.end, box.end);
        return;
      }
    }
    boxes_.push_back(box);
  }

  const PlayedStep& step_;
  int stage_, rank_;
  std::vector<ScheduleBox> boxes_;
};

/// Keeps the start of a step that has too many boxes.
void cut(Schedule& schedule) {
  auto& boxes = schedule.boxes;
  std::stable_sort(boxes.begin(), boxes.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  if (boxes.size() <= kMostBoxes) return;
  schedule.shown = boxes[kMostBoxes].start;
  boxes.resize(kMostBoxes);
  for (ScheduleBox& box : boxes) box.end = std::min(box.end, schedule.shown);
}

std::size_t interval_of(Picoseconds time, Picoseconds end) {
  if (end.value <= 0) return 0;
  const double share = static_cast<double>(time.value) / static_cast<double>(end.value);
  return std::min(kIntervals - 1, static_cast<std::size_t>(std::max(0.0, share * kIntervals)));
}

/// The fullest moment of each interval.
std::vector<BytesByCategory> fullest_moments(const MemoryTimeline& timeline, Picoseconds end) {
  std::vector<BytesByCategory> fullest(kIntervals);
  std::vector<std::int64_t> highest(kIntervals, -1);
  BytesByCategory now = timeline.always;
  const auto raise = [&](std::size_t interval) {
    std::int64_t sum = 0;
    for (const std::int64_t bytes : now) sum += bytes;
    if (sum <= highest[interval]) return;
    highest[interval] = sum;
    fullest[interval] = now;
  };
  std::size_t interval = 0;
  raise(interval);
  for (const MemoryChange& change : timeline.changes) {
    const std::size_t target = interval_of(change.time, end);
    while (interval < target) raise(++interval);
    apply(change, now);
    raise(interval);
  }
  while (interval + 1 < kIntervals) raise(++interval);
  return fullest;
}

MemoryCurve curve_of(const MemoryTimeline& timeline, Picoseconds end) {
  MemoryCurve curve;
  curve.stage = "stage " + std::to_string(timeline.stage);
  curve.step = to_seconds(end);
  const auto moments = fullest_moments(timeline, end);
  for (std::size_t category = 0; category < kMemoryCategories; ++category) {
    std::vector<std::int64_t> bytes;
    for (const BytesByCategory& moment : moments) bytes.push_back(moment[category]);
    if (std::all_of(bytes.begin(), bytes.end(), [](std::int64_t amount) { return amount == 0; })) continue;
    curve.categories.emplace_back(name_of(static_cast<MemoryCategory>(category)));
    curve.bytes.push_back(std::move(bytes));
  }
  return curve;
}

/// Operands and result of a product, each moved once.
double bytes_moved(const GemmShape& shape, double element_bytes) {
  const auto batch = static_cast<double>(shape.batch), m = static_cast<double>(shape.m),
             n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  return batch * (m * k + k * n + m * n) * element_bytes;
}

class RooflineOps {
 public:
  explicit RooflineOps(const Plan& plan) : element_bytes_(payload_bits(tensor_format(plan)) / 8.0) {}

  void add(const SectionTimes& section) {
    for (std::size_t i = 0; i < section.ops.size(); ++i) add(section.list.ops[i], section.ops[i]);
  }
  std::vector<RooflineOp> take() { return std::move(ops_); }

 private:
  void add(const Op& op, const OpTime& time) {
    switch (op.kind) {
      case OpKind::gemm: {
        const double flops = op.gemm.flops(), bytes = bytes_moved(op.gemm, element_bytes_);
        point(op, "forward", flops, bytes, time.forward);
        point(op, "input gradient", flops, bytes, time.input_gradient);
        point(op, "weight gradient", flops, bytes, time.weight_gradient);
        break;
      }
      case OpKind::attention: {
        constexpr double kBackwardProducts = 2.5;  // QK^T again, dV, dP, dQ, dK against QK^T and PV
        point(op, "forward", op.attention.forward_flops(), bytes_of(op.forward_traffic), time.forward);
        point(op, "backward", op.attention.forward_flops() * kBackwardProducts, bytes_of(op.backward_traffic),
              time.input_gradient);
        break;
      }
      case OpKind::memory_bound: {
        const double forward = bytes_of(op.forward_traffic), backward = bytes_of(op.backward_traffic);
        point(op, "forward", forward / element_bytes_, forward, time.forward);
        point(op, "backward", backward / element_bytes_, backward, time.backward());
        break;
      }
      case OpKind::communication: break;
    }
  }
  static double bytes_of(Bytes bytes) { return static_cast<double>(bytes.value); }
  void point(const Op& op, const char* pass, double flops, double bytes, Seconds seconds) {
    if (flops > 0 && bytes > 0 && seconds.value > 0)
      ops_.push_back({std::string(op.name), pass, flops, bytes, seconds});
  }

  double element_bytes_;
  std::vector<RooflineOp> ops_;
};

bool crosses_nodes(const Plan& plan, const RankGrid& grid, const std::string& group_name) {
  for (int number = 0; number <= static_cast<int>(Group::world); ++number) {
    const auto group = static_cast<Group>(number);
    if (name_of(group) == group_name) return grid.layout(group, plan.hardware.devices_per_node).nodes > 1;
  }
  return false;
}

}  // namespace

Schedule schedule_of(const Simulation& simulation) {
  const PlayedStep& step = *simulation.step;
  Schedule schedule;
  schedule.step = schedule.shown = to_seconds(step.end);
  for (std::size_t stage = 0; stage < step.graph.stages.size(); ++stage)
    for (const ScheduleBox& box : StageBoxes(step, static_cast<int>(stage)).boxes()) schedule.boxes.push_back(box);
  cut(schedule);
  return schedule;
}

std::vector<MemoryCurve> memory_over_time(const Simulation& simulation) {
  std::vector<MemoryCurve> curves;
  for (const MemoryTimeline& timeline : simulation.memory) curves.push_back(curve_of(timeline, simulation.step->end));
  return curves;
}

Roofline roofline_of(const Plan& plan, const OpTimes& times) {
  RooflineOps ops(plan);
  for (const SectionTimes* section : {&times.embedding, &times.dense_layer, &times.moe_layer, &times.head})
    ops.add(*section);
  Roofline roofline;
  const auto peak = plan.hardware.device.peak.find(plan.precision.compute);
  if (peak != plan.hardware.device.peak.end()) roofline.peak = peak->second;
  roofline.bandwidth = plan.hardware.device.memory_bandwidth;
  roofline.ops = ops.take();
  return roofline;
}

std::vector<LinkTraffic> traffic_by_link(const StepProfile& profile) {
  const RankGrid grid(profile.plan);
  std::vector<LinkTraffic> traffic;
  for (const TrafficEntry& entry : profile.traffic)
    traffic.push_back({entry, crosses_nodes(profile.plan, grid, entry.group)});
  return traffic;
}

Report plan_report(const StepProfile& subject, const Simulation& simulation, const OpTimes& times) {
  Report report;
  report.title = profile_title(subject);
  report.summary = plan_degrees(subject);
  report.verdict = verdict_sentence(subject.verdict);
  report.profiles = {subject};
  report.schedule = schedule_of(simulation);
  report.memory_over_time = memory_over_time(simulation);
  report.roofline = roofline_of(subject.plan, times);
  report.traffic = traffic_by_link(subject);
  return report;
}

void add_comparison(Report& report, const std::vector<StepProfile>& beside, const ProfileComparison& comparison) {
  report.profiles.insert(report.profiles.end(), beside.begin(), beside.end());
  report.comparison = comparison;
}

}  // namespace reckon
