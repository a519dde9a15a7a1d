#include "cost_model/sharing.h"

#include <utility>

#include "cost_model/memory.h"
#include "cost_model/section_work.h"

namespace reckon {

Sharing::Sharing(Plan plan, const SectionElements& elements)
    : plan_(std::move(plan)),
      elements_(elements),
      times_(state_times(plan_, section_weights(plan_, elements))),
      whole_(section_bytes(plan_, elements)),
      rules_(OverlapLinks(plan_).rules()),
      communicators_(plan_.hardware.device.is_cpu ? Bytes(0) : communicator_bytes(plan_, 0)) {}

const RankMemory& Sharing::memory(const SectionCounts& counts, std::int64_t chunks, std::int64_t stage) {
  for (const Known& one : known_)
    if (one.counts == counts) return one.memory;
  plan_.parallel.chunks = chunks;  // where small tensors are treated apart, stages of equal counts hold equal tensors
  known_.push_back({counts, {stage_states(plan_, elements_, counts, stage), rank_buffers(plan_, elements_, counts)}});
  plan_.parallel.chunks = 1;
  return known_.back().memory;
}

}  // namespace reckon
