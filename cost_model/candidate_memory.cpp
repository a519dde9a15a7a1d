#include "cost_model/candidate_memory.h"

#include <algorithm>
#include <array>

namespace reckon {

namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

const std::vector<std::vector<SchedulePoint>>& SchedulePointCache::interleaved(std::int64_t stages, std::int64_t chunks,
                                                                               std::int64_t micro_batches) {
  const std::int64_t walked = std::min(micro_batches, 4 * stages);  // the rest repeats
  auto& points = known_[{stages, chunks, walked}];
  for (std::int64_t stage = static_cast<std::int64_t>(points.size()); stage < stages; ++stage)
    points.push_back(schedule_points(ScheduleKind::interleaved, static_cast<int>(stages), static_cast<int>(stage),
                                     static_cast<int>(chunks), static_cast<int>(walked)));
  return points;
}

MemoryFit CandidateMemory::fit(const CandidateParts& parts, CandidateStages& stages) {
  MemoryFit fit;
  known_.clear();
  const PlacedLayers& layers = stages.layers();
  if (parts.candidate.schedule == ScheduleKind::interleaved)
    points_ = &cache_.interleaved(layers.pipeline(), layers.chunks(), parts.micro_batches);
  const std::int64_t last = layers.pipeline() - 1;
  const bool alike = stages.are_alike() && parts.candidate.recompute == Recompute::none;
  for (std::int64_t stage = 0; stage <= last; ++stage) {
    if (alike && stage > 1 && stage < last) continue;
    if (!fit_stage(parts, stages, stage, fit)) return fit;
  }
  fit.fits = true;
  return fit;
}

bool CandidateMemory::fit_stage(const CandidateParts& parts, CandidateStages& stages, std::int64_t stage,
                                MemoryFit& fit) {
  const Candidate& candidate = parts.candidate;
  Sharing& sharing = parts.sharing;
  const RankMemory& rank = sharing.memory(stages.layers().sections(stage), candidate.chunks, stage);
  const StateMemory& states = rank.states;
  const std::int64_t fixed = (states.total() + sharing.communicators() + rank.buffers +
                              micro_batch_buffers(sharing.plan(), candidate.micro_batch, candidate.chunks, stage))
                                 .value;
  const auto refuse = [&](std::string_view component) {
    fit.breaks = component;
    return false;
  };
  if (states.parameters.value > limit_) return refuse("parameters");
  if ((states.parameters + states.gradients).value > limit_) return refuse("gradients");
  if (states.total().value > limit_) return refuse("optimizer");
  if (fixed > limit_) return refuse("communication");
  std::int64_t bytes = fixed + activations(parts, stages, stage);
  if (bytes > limit_ && candidate.recompute != Recompute::none) bytes = recompute_fewest(parts, stages, stage, fixed);
  if (bytes > limit_) return refuse("activations");
  fit.need = std::max(fit.need, Bytes(bytes));
  return true;
}

/// Bytes that the stage needs when it recomputes the fewest layers that fit, or all: what it needs falls with each.
std::int64_t CandidateMemory::recompute_fewest(const CandidateParts& parts, CandidateStages& stages, std::int64_t stage,
                                               std::int64_t fixed) {
  const SectionCounts sections = stages.layers().sections(stage);
  const auto need = [&](std::int64_t layers) {
    stages.layers().recompute(stage, layers);
    return fixed + activations(parts, stages, stage);
  };
  std::int64_t low = 0, high = sections.dense + sections.moe;
  std::int64_t bytes = need(high);
  while (bytes <= limit_ && high - low > 1) {
    const std::int64_t middle = (low + high) / 2, tried = need(middle);
    (tried <= limit_ ? high : low) = middle;
    if (tried <= limit_) bytes = tried;
  }
  stages.layers().recompute(stage, high);
  return bytes;
}

/// Highest bytes of activations and transients on a stage, and what lies beside them for the whole run.
std::int64_t CandidateMemory::activations(const CandidateParts& parts, const CandidateStages& stages,
                                          std::int64_t stage) {
  const std::int64_t constant = parts.shape.constant_bytes().value, tokens = parts.shape.token_bytes().value;
  if (parts.candidate.schedule == ScheduleKind::interleaved)
    return interleaved_activations(parts, stages, stage) + constant;
  const ChunkMemory& peak = chunk_peak(parts, stages.layers().chunk(0, stage), stages.bits(stage));
  const std::int64_t others = in_flight(parts.candidate, stage, parts.micro_batches) - 1;
  return others * (peak.kept.value + tokens) + tokens + std::max(peak.forward.total(), peak.backward.total()).value +
         constant;
}

std::int64_t CandidateMemory::interleaved_activations(const CandidateParts& parts, const CandidateStages& stages,
                                                      std::int64_t stage) {
  const PlacedLayers& layers = stages.layers();
  const std::int64_t tokens = parts.shape.token_bytes().value, chunks = layers.chunks();
  peaks_.resize(at(chunks));
  for (std::int64_t c = 0; c < chunks; ++c)
    peaks_[at(c)] = chunk_peak(parts, layers.chunk(c, stage), stages.bits(stage));
  std::int64_t highest = 0;
  for (const SchedulePoint& point : (*points_)[at(stage)]) {
    const ChunkMemory& running = peaks_[at(point.chunk)];
    const MemoryMoment& moment = point.kind == ActionKind::forward ? running.forward : running.backward;
    std::int64_t sum = tokens + moment.total().value;
    for (std::int64_t c = 0; c < chunks; ++c) sum += point.alive[at(c)] * (peaks_[at(c)].kept.value + tokens);
    highest = std::max(highest, sum);
  }
  return highest;
}

const ChunkMemory& CandidateMemory::chunk_peak(const CandidateParts& parts, const ChunkLayers& chunk, int bits) {
  for (const KnownChunk& one : known_)
    if (one.bits == bits && one.layers == chunk) return one.memory;
  std::array<RunMemory, kLayerRuns> runs;
  std::size_t count = 0;
  for (const LayerRun& run : runs_of(chunk))
    if (run.count > 0)
      runs[count++] = {&parts.shape.memory(run.section, parts.treatment(run, bits)), parts.sharing.whole(run.section),
                       run.count};
  known_.push_back({chunk, bits, chunk_memory({runs.data(), count})});
  return known_.back().memory;
}

}  // namespace reckon
