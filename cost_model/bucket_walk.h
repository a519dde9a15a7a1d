// The reduction of gradients that are not sharded: the last micro-batch's backwards fill buckets section by section,
// and full buckets are reduced one after another beside whatever the stage does next, or while it waits.
#pragma once

#include <cstdint>

#include "cost_model/stage_work.h"
#include "plan/pipeline_schedule.h"

namespace reckon {

class BucketWalk {
 public:
  /// `work` outlives the walk. `reduce` is the time of all `buckets` of the stage, nothing beside them; 0: no
  /// reduction.
  BucketWalk(const OverlapRules& rules, const StageWork& work, Seconds reduce, std::int64_t buckets,
             std::int64_t micro_batches);

  /// Elapsed seconds of the stage's next action, which begins `idle` seconds after the one before it ended.
  Seconds run(const Action& action, Seconds idle);

  /// Reductions left behind the actions run so far: buckets that wait, and those that are not full.
  Seconds left() const { return pending_ + bucket_ * static_cast<double>(buckets_ - sent_); }
  /// By how much the actions took longer for the buckets beside them.
  Seconds slowed() const { return slowed_; }

 private:
  Seconds section(const SectionWork& work, bool forward, bool fills);
  void fill(std::int64_t weights);

  const OverlapRules& rules_;
  const StageWork& work_;
  Seconds bucket_{0.0}, pending_{0.0}, slowed_{0.0};
  std::int64_t buckets_ = 0, last_micro_batch_ = 0, weights_ = 0, sent_ = 0, filled_ = 0;
};

}  // namespace reckon
