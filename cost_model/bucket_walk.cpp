#include "cost_model/bucket_walk.h"

#include <algorithm>

namespace reckon {

BucketWalk::BucketWalk(const OverlapRules& rules, const StageWork& work, Seconds reduce, std::int64_t buckets,
                       std::int64_t micro_batches)
    : rules_(rules), work_(work), last_micro_batch_(micro_batches - 1) {
  if (reduce.value <= 0.0) return;
  buckets_ = std::max<std::int64_t>(1, buckets);
  bucket_ = reduce * (1.0 / static_cast<double>(buckets_));
  for (const auto& runs : work.chunks)
    for (const WorkRun& run : runs) weights_ += run.count * run.work->weights;
}

Seconds BucketWalk::run(const Action& action, Seconds idle) {
  const auto chunk = static_cast<std::size_t>(action.chunk);
  const bool forward = action.kind == ActionKind::forward;
  const Seconds alone = (forward ? work_.forward : work_.backward)[chunk].elapsed;
  pending_ = std::max(Seconds(0.0), pending_ - idle);
  const bool fills = buckets_ > 0 && !forward && action.micro_batch == last_micro_batch_;
  if (!fills && pending_.value <= 0.0) return alone;
  const auto& runs = work_.chunks[chunk];
  Seconds elapsed(0.0);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const WorkRun& run = forward ? runs[i] : runs[runs.size() - 1 - i];
    for (std::int64_t section_of_run = 0; section_of_run < run.count; ++section_of_run)
      elapsed += section(*run.work, forward, fills);
  }
  slowed_ += elapsed - alone;
  return elapsed;
}

Seconds BucketWalk::section(const SectionWork& work, bool forward, bool fills) {
  const ActionTime& action = forward ? work.forward : work.backward;
  Seconds elapsed = action.elapsed;
  if (pending_.value > 0.0) {
    Background reduction{pending_, rules_.reduce_between_nodes};
    elapsed = run_beside(action.phases, rules_, {&reduction, 1});
    pending_ = reduction.left;
  }
  if (fills) fill(work.weights);
  return elapsed;
}

void BucketWalk::fill(std::int64_t weights) {
  filled_ += weights;
  const auto full = static_cast<std::int64_t>(static_cast<double>(buckets_) * static_cast<double>(filled_) /
                                              static_cast<double>(weights_));
  pending_ += bucket_ * static_cast<double>(full - sent_);
  sent_ = full;
}

}  // namespace reckon
