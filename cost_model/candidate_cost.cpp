#include "cost_model/candidate_cost.h"

#include <algorithm>
#include <utility>

#include "cost_model/memory.h"
#include "cost_model/op_cost.h"
#include "cost_model/stage_work.h"
#include "cost_model/state_memory.h"
#include "plan/core_sharing.h"
#include "plan/pipeline_schedule.h"

namespace reckon {

namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

std::int64_t in_flight(const Candidate& candidate, std::int64_t stage, std::int64_t micro_batches) {
  const std::int64_t p = candidate.degrees.pipeline, v = candidate.chunks;
  switch (candidate.schedule) {
    case ScheduleKind::gpipe: return micro_batches;
    case ScheduleKind::one_forward_one_backward: return std::min(micro_batches, p - stage);
    case ScheduleKind::interleaved: return std::min(micro_batches * v, 2 * (p - stage - 1) + (v - 1) * p + 1);
  }
  return micro_batches;
}

double overlapped_seconds(const Plan& plan, double compute, double communication) {
  const OverlapSlowdown slowdown = overlap_slowdown(plan);
  return overlapped(Seconds(compute), Seconds(communication), slowdown.compute, slowdown.communication).value;
}

}  // namespace

std::array<CandidateModel::Run, CandidateModel::kRuns> CandidateModel::runs_in(const Chunk& chunk) {
  return {Run{Section::embedding, false, chunk.embedding},
          Run{Section::dense_layer, true, chunk.again_dense},
          Run{Section::dense_layer, false, chunk.dense - chunk.again_dense},
          Run{Section::moe_layer, true, chunk.again_moe},
          Run{Section::moe_layer, false, chunk.moe - chunk.again_moe},
          Run{Section::head, false, chunk.head}};
}

const std::vector<std::vector<SchedulePoint>>& SchedulePointCache::interleaved(std::int64_t stages, std::int64_t chunks,
                                                                               std::int64_t micro_batches) {
  const std::int64_t walked = std::min(micro_batches, 4 * stages);  // the rest repeats
  auto& points = known_[{stages, chunks, walked}];
  for (std::int64_t stage = static_cast<std::int64_t>(points.size()); stage < stages; ++stage)
    points.push_back(schedule_points(ScheduleKind::interleaved, static_cast<int>(stages), static_cast<int>(stage),
                                     static_cast<int>(chunks), static_cast<int>(walked)));
  return points;
}

Sharing make_sharing(Plan plan) {
  Sharing sharing;
  sharing.weights = section_weights(plan);
  sharing.times = state_times(plan, sharing.weights);
  sharing.whole = section_bytes(plan);
  sharing.rules = overlap_rules(plan);
  sharing.communicators = plan.hardware.device.is_cpu ? Bytes(0) : communicator_bytes(plan, 0);
  sharing.plan = std::move(plan);
  return sharing;
}

CandidateModel::CandidateModel(const Plan& base, Bytes limit) : base_(base), limit_(limit.value), moe_before_{0} {
  for (std::int64_t layer = 0; layer < base.model.layers; ++layer)
    moe_before_.push_back(moe_before_.back() + (base.model.layer_is_moe(layer) ? 1 : 0));
}

void CandidateModel::place_layers(const Candidate& candidate) {
  pipeline_ = candidate.degrees.pipeline;
  chunks_ = candidate.chunks;
  const std::int64_t stages = pipeline_ * chunks_, layers = base_.model.layers;
  placed_.assign(at(stages), {});
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < stages; ++i) {
    const std::int64_t count = layers / stages + (i < layers % stages ? 1 : 0);
    Chunk& chunk = placed_[at(i)];
    chunk.moe = moe_before_[at(first + count)] - moe_before_[at(first)];
    chunk.dense = count - chunk.moe;
    first += count;
  }
  placed_.front().embedding = 1;
  placed_.back().head = 1;
}

const CandidateModel::Chunk& CandidateModel::chunk(std::int64_t index, std::int64_t stage) const {
  return placed_[at(index * pipeline_ + stage)];
}

void CandidateModel::choose_widths(const Candidate& candidate, std::int64_t micro_batches) {
  widths_.clear();
  const NumberFormat format = storage_choices()[candidate.storage].format.value_or(base_.activations.stored);
  if (!is_block_scaled(format)) return;
  const bool even = base_.model.layers % (pipeline_ * chunks_) == 0;
  std::vector<int> counts;
  for (std::int64_t stage = 0; stage < pipeline_; ++stage) {
    std::int64_t layers = 0;
    for (std::int64_t c = 0; c < chunks_; ++c) layers += chunk(c, stage).dense + chunk(c, stage).moe;
    const std::int64_t count = in_flight(candidate, stage, micro_batches);
    counts.push_back(static_cast<int>(even ? count : count * layers));
  }
  widths_ = bits_by_stage(counts, payload_bits(format));
}

void CandidateModel::recompute_layers(std::int64_t stage, std::int64_t layers) {
  for (std::int64_t c = 0; c < chunks_; ++c) {
    Chunk& here = placed_[at(c * pipeline_ + stage)];
    here.again_dense = std::min(layers, here.dense);
    layers -= here.again_dense;
    here.again_moe = std::min(layers, here.moe);
    layers -= here.again_moe;
  }
}

ChunkMemory CandidateModel::chunk_peak(const Candidate& candidate, const Sharing& sharing, ShapeCosts& shape,
                                       std::int64_t stage, const Chunk& chunk) const {
  std::array<RunMemory, kRuns> runs;
  std::size_t count = 0;
  for (const Run& run : runs_in(chunk)) {
    if (run.count == 0) continue;
    const auto section = static_cast<std::size_t>(run.section);
    const SectionMemory& memory =
        shape.memory(run.section, {run.again ? candidate.recompute : Recompute::none, candidate.storage, bits(stage)});
    runs[count++] = {&memory, sharing.whole[section], run.count};
  }
  return chunk_memory({runs.data(), count});
}

std::int64_t CandidateModel::stage_need(const Candidate& candidate, const Sharing& sharing, ShapeCosts& shape,
                                        std::int64_t stage, std::int64_t micro_batches) {
  const std::int64_t tokens = shape.token_bytes().value;
  std::int64_t highest = 0;
  if (candidate.schedule != ScheduleKind::interleaved) {
    const ChunkMemory peak = chunk_peak(candidate, sharing, shape, stage, chunk(0, stage));
    const std::int64_t others = in_flight(candidate, stage, micro_batches) - 1;
    highest =
        others * (peak.kept.value + tokens) + tokens + std::max(peak.forward.total(), peak.backward.total()).value;
  } else {
    peaks_.resize(at(chunks_));
    for (std::int64_t c = 0; c < chunks_; ++c)
      peaks_[at(c)] = chunk_peak(candidate, sharing, shape, stage, chunk(c, stage));
    for (const SchedulePoint& point : points_.interleaved(pipeline_, chunks_, micro_batches)[at(stage)]) {
      const ChunkMemory& running = peaks_[at(point.chunk)];
      const MemoryMoment& moment = point.kind == ActionKind::forward ? running.forward : running.backward;
      std::int64_t sum = tokens + moment.total().value;
      for (std::int64_t c = 0; c < chunks_; ++c) sum += point.alive[at(c)] * (peaks_[at(c)].kept.value + tokens);
      highest = std::max(highest, sum);
    }
  }
  return highest + shape.constant_bytes().value;
}

namespace {

WeightElements stage_elements(const Sharing& sharing, std::int64_t embedding, std::int64_t dense, std::int64_t moe,
                              std::int64_t head) {
  const std::int64_t counts[] = {embedding, dense, moe, head};
  WeightElements sum;
  for (std::size_t i = 0; i < 4; ++i)
    sum += {counts[i] * sharing.weights[i].shared, counts[i] * sharing.weights[i].experts};
  return sum;
}

}  // namespace

bool CandidateModel::fit_stage(const Candidate& candidate, const Sharing& sharing, ShapeCosts& shape,
                               std::int64_t stage, std::int64_t micro_batches, CandidateCost& cost) {
  Chunk sum;
  for (std::int64_t c = 0; c < chunks_; ++c) {
    const Chunk& one = chunk(c, stage);
    sum.embedding += one.embedding;
    sum.dense += one.dense;
    sum.moe += one.moe;
    sum.head += one.head;
  }
  const WeightElements weights = stage_elements(sharing, sum.embedding, sum.dense, sum.moe, sum.head);
  const StateMemory states = state_memory(sharing.plan, weights);
  const std::int64_t fixed = states.total().value + sharing.communicators.value +
                             communication_buffers(sharing.plan, weights.total()).value +
                             held_messages(sharing.plan, candidate.micro_batch, stage).value;
  const auto refuse = [&](std::string_view component) {
    cost.breaks = component;
    return false;
  };
  if (states.parameters.value > limit_) return refuse("parameters");
  if ((states.parameters + states.gradients).value > limit_) return refuse("gradients");
  if (states.total().value > limit_) return refuse("optimizer");
  if (fixed > limit_) return refuse("communication");
  const auto need = [&] { return fixed + stage_need(candidate, sharing, shape, stage, micro_batches); };
  std::int64_t bytes = need();
  if (bytes > limit_ && candidate.recompute != Recompute::none) {
    // The fewest layers that fit: what a stage needs falls with each recomputed layer.
    std::int64_t low = 0, high = sum.dense + sum.moe;
    recompute_layers(stage, high);
    bytes = need();
    while (bytes <= limit_ && high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      recompute_layers(stage, middle);
      const std::int64_t tried = need();
      (tried <= limit_ ? high : low) = middle;
      if (tried <= limit_) bytes = tried;
    }
    recompute_layers(stage, high);
  }
  if (bytes > limit_) return refuse("activations");
  cost.need = std::max(cost.need, Bytes(bytes));
  return true;
}

std::vector<std::int64_t> CandidateModel::recomputed_layers() const {
  std::vector<std::int64_t> layers(at(pipeline_), 0);
  for (std::size_t i = 0; i < placed_.size(); ++i)
    layers[i % layers.size()] += placed_[i].again_dense + placed_[i].again_moe;
  return layers;
}

CandidateCost CandidateModel::evaluate(const Candidate& candidate, const Sharing& sharing, double message,
                                       ShapeCosts& shape) {
  const std::int64_t micro_batches = base_.batch.global_batch / (candidate.micro_batch * candidate.degrees.data);
  place_layers(candidate);
  choose_widths(candidate, micro_batches);
  CandidateCost cost;
  // Stages between the second and the last hold no more than the second, unless their widths or layers differ.
  const bool uniform = widths_.empty() && candidate.recompute == Recompute::none && !base_.model.is_moe();
  for (std::int64_t stage = 0; stage < pipeline_; ++stage) {
    if (uniform && stage > 1 && stage < pipeline_ - 1) continue;
    if (!fit_stage(candidate, sharing, shape, stage, micro_batches, cost)) return cost;
  }
  cost.fits = true;
  cost.seconds = step_seconds(candidate, sharing, message, shape, micro_batches) *
                 core_sharing(sharing.plan, micro_batches * candidate.chunks);
  return cost;
}

CandidateModel::StageSeconds CandidateModel::chunk_seconds(const Candidate& candidate, const Sharing& sharing,
                                                           ShapeCosts& shape, std::int64_t stage,
                                                           const Chunk& chunk) const {
  struct Timed {
    double count, gather, reduce;
    SectionCost* cost;
  };
  Timed runs[kRuns];
  std::size_t count = 0;
  StageSeconds sum;
  for (const Run& run : runs_in(chunk)) {
    if (run.count == 0) continue;
    SectionCost& cost =
        shape.cost(run.section, {run.again ? candidate.recompute : Recompute::none, candidate.storage, bits(stage)});
    const auto section = static_cast<std::size_t>(run.section);
    runs[count++] = {static_cast<double>(run.count), sharing.times.section_gather[section],
                     sharing.times.section_reduce[section], &cost};
    sum.forward += runs[count - 1].count * cost.forward;
    sum.backward += runs[count - 1].count * cost.backward;
  }
  if (candidate.zero < 2 || count == 0) return sum;
  // While a section computes, the next one's weights arrive and the previous one's gradients leave.
  for (std::size_t i = 0; i < count; ++i) {
    const Timed& run = runs[i];
    const double after = i + 1 < count ? runs[i + 1].gather : 0;
    const double above = i + 1 < count ? runs[i + 1].reduce : 0, below = i > 0 ? runs[i - 1].gather : 0;
    const auto forward = [&](double gather) { return run.cost->forward_excess(sharing.rules, gather); };
    const auto backward = [&](double reduce, double gather) {
      return run.cost->backward_excess(sharing.rules, reduce, gather);
    };
    sum.forward += (run.count - 1) * forward(run.gather) + forward(after);
    sum.backward += run.count == 1 ? backward(above, below)
                                   : backward(above, run.gather) + backward(run.reduce, below) +
                                         (run.count - 2) * backward(run.reduce, run.gather);
  }
  sum.forward += runs[0].gather;
  sum.backward += runs[count - 1].gather + runs[0].reduce;
  return sum;
}

double CandidateModel::step_seconds(const Candidate& candidate, const Sharing& sharing, double message,
                                    ShapeCosts& shape, std::int64_t micro_batches) {
  const auto p = static_cast<double>(pipeline_), m = static_cast<double>(micro_batches);
  const StateTimes& state = sharing.times;
  double forward_sum = 0, backward_sum = 0, slowest_forward = 0, slowest_backward = 0, slowest = 0, round_trip = 0;
  double first_backward = 0, last_backward = 0, behind = 0;
  for (std::int64_t stage = pipeline_; stage-- > 0;) {
    double forward = 0, backward = 0;
    for (std::int64_t c = 0; c < chunks_; ++c) {
      const StageSeconds one = chunk_seconds(candidate, sharing, shape, stage, chunk(c, stage));
      forward += one.forward;
      backward += one.backward;
    }
    forward_sum += forward;
    backward_sum += backward;
    slowest_forward = std::max(slowest_forward, forward);
    slowest_backward = std::max(slowest_backward, backward);
    slowest = std::max(slowest, forward + backward);
    behind += forward + backward;
    const auto depth = static_cast<double>(pipeline_ - stage);
    round_trip = std::max(round_trip, (behind + 2 * (depth - 1) * message) / depth);
    if (stage == pipeline_ - 1) last_backward = backward;
    if (stage == 0) first_backward = backward;
  }
  const double sum = forward_sum + backward_sum, delays = 2 * (p - 1) * message;
  double pipeline = 0;
  switch (candidate.schedule) {
    case ScheduleKind::gpipe: pipeline = sum + (m - 1) * (slowest_forward + slowest_backward) + delays; break;
    case ScheduleKind::one_forward_one_backward:
      pipeline = sum + (m - 1) * slowest + delays + std::max(0.0, m - p) * std::max(0.0, round_trip - slowest);
      break;
    case ScheduleKind::interleaved:
      pipeline = m * slowest + (sum - slowest) / static_cast<double>(chunks_) + delays;
      break;
  }
  // Reduction behind the last backward; stage 0 ends last, the last stage earlier by everybody else's backward.
  double ready = pipeline, end_of_step = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const StateTimes::Stage& s = state.stages[i];
    end_of_step = std::max(end_of_step, s.optimizer + s.gather);
    if (candidate.zero >= 2 || s.reduce <= 0 || i == 1) continue;
    const double own = i == 0 ? first_backward : last_backward;
    const double hidden = s.reduce * (s.buckets - 1) / s.buckets, tail = s.reduce / s.buckets;
    const double end = i == 0 ? pipeline : pipeline - (backward_sum - last_backward);
    ready = std::max(ready, end + overlapped_seconds(base_, own, hidden) - own + tail);
  }
  return ready + state.tied_reduce + end_of_step;
}

}  // namespace reckon
