#include "cost_model/candidate_time.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cost_model/op_cost.h"
#include "plan/core_sharing.h"

namespace reckon {

namespace {

struct ActionSeconds {
  double forward = 0, backward = 0;
};

struct TimedRun {
  double count, gather, reduce;
  SectionCost* cost;
};

/// While a section computes, the next one's weights arrive and the previous one's gradients leave (ZeRO-2 and 3).
void add_sharding(const OverlapRules& rules, const TimedRun* runs, std::size_t count, ActionSeconds& sum) {
  for (std::size_t i = 0; i < count; ++i) {
    const TimedRun& run = runs[i];
    const double after = i + 1 < count ? runs[i + 1].gather : 0;
    const double above = i + 1 < count ? runs[i + 1].reduce : 0, below = i > 0 ? runs[i - 1].gather : 0;
    const auto forward = [&](double gather) { return run.cost->forward_excess(rules, gather); };
    const auto backward = [&](double reduce, double gather) {
      return run.cost->backward_excess(rules, reduce, gather);
    };
    sum.forward += (run.count - 1) * forward(run.gather) + forward(after);
    sum.backward += run.count == 1 ? backward(above, below)
                                   : backward(above, run.gather) + backward(run.reduce, below) +
                                         (run.count - 2) * backward(run.reduce, run.gather);
  }
  sum.forward += runs[0].gather;
  sum.backward += runs[count - 1].gather + runs[0].reduce;
}

ActionSeconds chunk_seconds(const CandidateParts& parts, const ChunkLayers& chunk, int bits) {
  TimedRun runs[kLayerRuns];
  std::size_t count = 0;
  ActionSeconds sum;
  const StateTimes& times = parts.sharing.times();
  for (const LayerRun& run : runs_of(chunk)) {
    if (run.count == 0) continue;
    SectionCost& cost = parts.shape.cost(run.section, parts.treatment(run, bits));
    const auto section = static_cast<std::size_t>(run.section);
    runs[count++] = {static_cast<double>(run.count), times.section_gather[section], times.section_reduce[section],
                     &cost};
    sum.forward += runs[count - 1].count * cost.forward;
    sum.backward += runs[count - 1].count * cost.backward;
  }
  if (parts.candidate.zero >= 2 && count > 0) add_sharding(parts.sharing.rules(), runs, count, sum);
  return sum;
}

/// Chunks of a candidate come in few kinds: one after another is mostly like the one before.
class ChunkSeconds {
 public:
  explicit ChunkSeconds(const CandidateParts& parts) : parts_(parts) {}

  const ActionSeconds& of(const ChunkLayers& chunk, int bits) {
    if (chunk == before_ && bits == bits_) return seconds_;
    before_ = chunk;
    bits_ = bits;
    return seconds_ = chunk_seconds(parts_, chunk, bits);
  }

 private:
  const CandidateParts& parts_;
  ChunkLayers before_;
  int bits_ = -1;
  ActionSeconds seconds_;
};

/// Work of one micro-batch on the stages of a pipeline.
struct PipelineWork {
  double forward_sum = 0, backward_sum = 0, slowest_forward = 0, slowest_backward = 0, slowest = 0, round_trip = 0;
  double first_backward = 0, last_backward = 0;
};

PipelineWork pipeline_work(const CandidateParts& parts, const CandidateStages& stages, double message) {
  const PlacedLayers& layers = stages.layers();
  const std::int64_t p = layers.pipeline();
  ChunkSeconds chunk_seconds(parts);
  PipelineWork work;
  double behind = 0;
  for (std::int64_t stage = p; stage-- > 0;) {
    double forward = 0, backward = 0;
    for (std::int64_t c = 0; c < layers.chunks(); ++c) {
      const ActionSeconds& one = chunk_seconds.of(layers.chunk(c, stage), stages.bits(stage));
      forward += one.forward;
      backward += one.backward;
    }
    work.forward_sum += forward;
    work.backward_sum += backward;
    work.slowest_forward = std::max(work.slowest_forward, forward);
    work.slowest_backward = std::max(work.slowest_backward, backward);
    work.slowest = std::max(work.slowest, forward + backward);
    behind += forward + backward;
    const auto depth = static_cast<double>(p - stage);
    work.round_trip = std::max(work.round_trip, (behind + 2 * (depth - 1) * message) / depth);
    if (stage == p - 1) work.last_backward = backward;
    if (stage == 0) work.first_backward = backward;
  }
  return work;
}

/// From the first forward to the last backward.
double pipeline_seconds(const CandidateParts& parts, const CandidateStages& stages, const PipelineWork& work,
                        double message) {
  const auto p = static_cast<double>(stages.layers().pipeline()), m = static_cast<double>(parts.micro_batches);
  const double sum = work.forward_sum + work.backward_sum, delays = 2 * (p - 1) * message;
  switch (parts.candidate.schedule) {
    case ScheduleKind::gpipe: return sum + (m - 1) * (work.slowest_forward + work.slowest_backward) + delays;
    case ScheduleKind::one_forward_one_backward:
      return sum + (m - 1) * work.slowest + delays +
             std::max(0.0, m - p) * std::max(0.0, work.round_trip - work.slowest);
    case ScheduleKind::interleaved:
      return m * work.slowest + (sum - work.slowest) / static_cast<double>(stages.layers().chunks()) + delays;
  }
  return 0;
}

/// Of all stages together.
double busy_seconds(const CandidateParts& parts, const CandidateStages& stages, const PipelineWork& work) {
  const StateTimes& state = parts.sharing.times();
  const std::int64_t inner = stages.layers().pipeline() - 2;
  double busy = static_cast<double>(parts.micro_batches) * (work.forward_sum + work.backward_sum);
  for (const auto& [stage, count] : {std::pair{0, std::int64_t{1}}, {1, inner}, {2, std::int64_t{1}}}) {
    const StateTimes::Stage& s = state.stages[static_cast<std::size_t>(stage)];
    const double reduce = parts.candidate.zero < 2 ? s.reduce : 0.0;
    busy += static_cast<double>(count) * (s.optimizer + s.gather + reduce);
  }
  return busy;
}

}  // namespace

CandidateTime candidate_time(const Plan& base, const CandidateParts& parts, const CandidateStages& stages,
                             double message) {
  const StateTimes& state = parts.sharing.times();
  const PipelineWork work = pipeline_work(parts, stages, message);
  const double pipeline = pipeline_seconds(parts, stages, work, message);
  const OverlapSlowdown slowdown = overlap_slowdown(base);
  // Reduction behind the last backward; stage 0 ends last, the last stage earlier by everybody else's backward.
  double ready = pipeline, end_of_step = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const StateTimes::Stage& s = state.stages[i];
    end_of_step = std::max(end_of_step, s.optimizer + s.gather);
    if (parts.candidate.zero >= 2 || s.reduce <= 0 || i == 1) continue;
    const double own = i == 0 ? work.first_backward : work.last_backward;
    const double hidden = s.reduce * (s.buckets - 1) / s.buckets, tail = s.reduce / s.buckets;
    const double end = i == 0 ? pipeline : pipeline - (work.backward_sum - work.last_backward);
    const Seconds both = overlapped(Seconds(own), Seconds(hidden), slowdown.compute, slowdown.communication);
    ready = std::max(ready, end + both.value - own + tail);
  }
  const double seconds = ready + state.tied_reduce + end_of_step;
  return {seconds, stages.layers().pipeline() == 1 ? 1.0 : busy_seconds(parts, stages, work) / seconds};
}

}  // namespace reckon
