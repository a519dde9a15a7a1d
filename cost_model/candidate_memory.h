// Whether a candidate fits: stage_peak's arithmetic on memoised sections, exact but for the allocator's slack, which
// only a replay gives. In a recompute mode each stage recomputes the fewest layers that fit.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "cost_model/candidate_stages.h"
#include "cost_model/chunk_memory.h"
#include "cost_model/schedule_points.h"

namespace reckon {

/// Schedule moments by (pipeline, chunks, micro-batches), looked up by all candidates of one thread.
class SchedulePointCache {
 public:
  /// Points of every stage of an interleaved schedule.
  const std::vector<std::vector<SchedulePoint>>& interleaved(std::int64_t stages, std::int64_t chunks,
                                                             std::int64_t micro_batches);

 private:
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::vector<std::vector<SchedulePoint>>> known_;
};

struct MemoryFit {
  bool fits = false;
  Bytes need;               // of the worst stage, compared with the limit
  std::string_view breaks;  // component that crosses it first
};

class CandidateMemory {
 public:
  explicit CandidateMemory(Bytes limit) : limit_(limit.value) {}

  MemoryFit fit(const CandidateParts& parts, CandidateStages& stages);

 private:
  struct KnownChunk {
    ChunkLayers layers;
    int bits;
    ChunkMemory memory;
  };

  bool fit_stage(const CandidateParts& parts, CandidateStages& stages, std::int64_t stage, MemoryFit& fit);
  std::int64_t recompute_fewest(const CandidateParts& parts, CandidateStages& stages, std::int64_t stage,
                                std::int64_t fixed);
  std::int64_t activations(const CandidateParts& parts, const CandidateStages& stages, std::int64_t stage);
  std::int64_t interleaved_activations(const CandidateParts& parts, const CandidateStages& stages, std::int64_t stage);
  const ChunkMemory& chunk_peak(const CandidateParts& parts, const ChunkLayers& chunk, int bits);

  std::int64_t limit_;
  SchedulePointCache cache_;
  const std::vector<std::vector<SchedulePoint>>* points_ = nullptr;  // of the candidate at hand, by stage
  std::vector<KnownChunk> known_;                                    // of the candidate at hand
  std::vector<ChunkMemory> peaks_;                                   // by chunk, of the stage at hand
};

}  // namespace reckon
