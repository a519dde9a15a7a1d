#include "cost_model/candidate_stages.h"

#include <algorithm>

#include "plan/pipeline_schedule.h"

namespace reckon {

std::int64_t in_flight(const Candidate& candidate, std::int64_t stage, std::int64_t micro_batches) {
  const std::int64_t p = candidate.degrees.pipeline, v = candidate.chunks;
  switch (candidate.schedule) {
    case ScheduleKind::gpipe: return micro_batches;
    case ScheduleKind::one_forward_one_backward: return std::min(micro_batches, p - stage);
    case ScheduleKind::interleaved: return std::min(micro_batches * v, 2 * (p - stage - 1) + (v - 1) * p + 1);
  }
  return micro_batches;
}

void CandidateStages::place(const Candidate& candidate, std::int64_t micro_batches) {
  layers_.place(candidate.degrees.pipeline, candidate.chunks);
  choose_widths(candidate, micro_batches);
}

void CandidateStages::choose_widths(const Candidate& candidate, std::int64_t micro_batches) {
  widths_.clear();
  const NumberFormat format = storage_choices()[candidate.storage].format.value_or(base_.activations.stored);
  if (!is_block_scaled(format)) return;
  const bool even = layers_.is_even();
  std::vector<int> counts;
  for (std::int64_t stage = 0; stage < layers_.pipeline(); ++stage) {
    const SectionCounts sections = layers_.sections(stage);
    const std::int64_t count = in_flight(candidate, stage, micro_batches);
    counts.push_back(static_cast<int>(even ? count : count * (sections.dense + sections.moe)));
  }
  widths_ = bits_by_stage(counts, payload_bits(format));
}

}  // namespace reckon
