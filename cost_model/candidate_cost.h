// Memory and step time of one candidate of a search in about a microsecond, from the memoised costs of its shape.
//
// Memory is stage_peak's arithmetic on the memo, exact but for the allocator's slack, which only a replay gives. Time
// is a closed form of the schedules (docs/pipeline.md): the pipeline fills and drains over all stages, and in between
// advances by the slowest stage or by the round trip that a stage's micro-batches in flight can hide. The best
// candidates are predicted again in full.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "cost_model/chunk_memory.h"
#include "cost_model/schedule_points.h"
#include "cost_model/search_space.h"
#include "cost_model/shape_costs.h"
#include "cost_model/state_times.h"

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

/// One way to share a shape's model out: what does not depend on schedule, storage and recomputation.
struct Sharing {
  Plan plan;  // all degrees and ZeRO
  StateTimes times;
  SectionWeights weights;
  std::array<SectionBytes, 4> whole;  // by Section
  OverlapRules rules;
  Bytes communicators;
};
Sharing make_sharing(Plan plan);

struct CandidateCost {
  bool fits = false;
  Bytes need;               // of the worst stage, compared with the limit
  std::string_view breaks;  // component that crosses it first
  double seconds = 0;       // step; only when it fits
};

class CandidateModel {
 public:
  CandidateModel(const Plan& base, Bytes limit);

  /// `sharing` belongs to the candidate's degrees and ZeRO stage, `shape` to its shape. `message` in seconds.
  CandidateCost evaluate(const Candidate& candidate, const Sharing& sharing, double message, ShapeCosts& shape);

  /// Layers that each stage of the candidate evaluated last has to recompute.
  std::vector<std::int64_t> recomputed_layers() const;

 private:
  struct StageSeconds {
    double forward = 0, backward = 0;
  };
  struct Chunk {
    std::int64_t embedding = 0, head = 0, dense = 0, moe = 0, again_dense = 0, again_moe = 0;
  };
  /// Equal sections of a chunk, in model order.
  struct Run {
    Section section;
    bool again;
    std::int64_t count;
  };
  static constexpr std::size_t kRuns = 6;
  static std::array<Run, kRuns> runs_in(const Chunk& chunk);

  void place_layers(const Candidate& candidate);
  void choose_widths(const Candidate& candidate, std::int64_t micro_batches);
  int bits(std::int64_t stage) const { return widths_.empty() ? 0 : widths_[static_cast<std::size_t>(stage)]; }
  const Chunk& chunk(std::int64_t index, std::int64_t stage) const;
  void recompute_layers(std::int64_t stage, std::int64_t layers);
  ChunkMemory chunk_peak(const Candidate& candidate, const Sharing& sharing, ShapeCosts& shape, std::int64_t stage,
                         const Chunk& chunk) const;
  StageSeconds chunk_seconds(const Candidate& candidate, const Sharing& sharing, ShapeCosts& shape, std::int64_t stage,
                             const Chunk& chunk) const;
  std::int64_t stage_need(const Candidate& candidate, const Sharing& sharing, ShapeCosts& shape, std::int64_t stage,
                          std::int64_t micro_batches);
  bool fit_stage(const Candidate& candidate, const Sharing& sharing, ShapeCosts& shape, std::int64_t stage,
                 std::int64_t micro_batches, CandidateCost& cost);
  double step_seconds(const Candidate& candidate, const Sharing& sharing, double message, ShapeCosts& shape,
                      std::int64_t micro_batches);

  const Plan& base_;
  std::int64_t limit_;
  std::vector<std::int64_t> moe_before_;  // MoE layers before each layer
  SchedulePointCache points_;
  std::int64_t pipeline_ = 1, chunks_ = 1;
  std::vector<Chunk> placed_;       // by virtual stage
  std::vector<ChunkMemory> peaks_;  // by chunk, of the stage at hand
  std::vector<int> widths_;         // by stage; empty unless block-scaled
};

}  // namespace reckon
