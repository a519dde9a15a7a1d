// Memory of one section (embedding, layer, head) on one rank for one micro-batch: what it keeps, and the worst moments
// of its forward and backward. Taken from the allocation events of plan/memory_events.h.
#pragma once

#include "plan/kept_tensors.h"
#include "plan/layer_ops.h"
#include "plan/memory_events.h"

namespace reckon {

/// What is allocated at one moment.
struct MemoryMoment {
  Bytes kept, transient;

  Bytes total() const { return kept + transient; }
};

/// Raises `highest` to `moment` where that is more in total; of equal ones, to the one that keeps more.
void raise(MemoryMoment& highest, const MemoryMoment& moment);

struct SectionMemory {
  Bytes kept;                      // from its forward to its backward
  MemoryMoment forward, backward;  // the section's own bytes at its highest total, its input included
};

SectionMemory section_memory(const OpList& list, const KeptSet& kept);

}  // namespace reckon
