// Highest moments of one chunk's forward and backward, as runs of equal sections: the arithmetic that the full
// prediction and the search share (docs/memory.md).
//
// While a chunk runs forward or backward, its earlier sections hold what they keep and the running one is at its own
// worst moment. ZeRO-3 holds the gathered weights of the running section and of the next, which is fetched ahead. From
// ZeRO-2 on (and where main gradients are stored in fewer bits) the gradient of the running section is whole. What is
// reduced as it lies lives until the section after it has run backward: two are alive at a time.
#pragma once

#include <cstdint>
#include <span>

#include "cost_model/section_memory.h"
#include "plan/stage_units.h"

namespace reckon {

struct RunMemory {
  const SectionMemory* section = nullptr;
  SectionBytes whole;      // of one section
  std::int64_t count = 0;  // 0: left out
};

struct ChunkMemory {
  Bytes kept;  // from forward to backward
  MemoryMoment forward, backward;
};

/// `runs` in model order.
ChunkMemory chunk_memory(std::span<const RunMemory> runs);

}  // namespace reckon
