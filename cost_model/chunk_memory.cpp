#include "cost_model/chunk_memory.h"

namespace reckon {

namespace {

/// What the neighbours of a section hold while it runs.
struct Neighbours {
  Bytes gathered_before, gathered_after, reduced_after;
};

void raise(ChunkMemory& chunk, Bytes earlier, const RunMemory& run, const Neighbours& beside) {
  const SectionMemory& own = *run.section;
  raise(chunk.forward,
        MemoryMoment{earlier + own.forward.kept, own.forward.transient + run.whole.gathered + beside.gathered_after});
  raise(chunk.backward,
        MemoryMoment{earlier + own.backward.kept, own.backward.transient + run.whole.gathered + beside.gathered_before +
                                                      run.whole.gradient + beside.reduced_after});
}

}  // namespace

ChunkMemory chunk_memory(std::span<const RunMemory> runs) {
  ChunkMemory chunk;
  Bytes gathered_before;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunMemory& run = runs[i];
    if (run.count == 0) continue;
    std::size_t next = i + 1;
    while (next < runs.size() && runs[next].count == 0) ++next;
    const Bytes gathered_after = next < runs.size() ? runs[next].whole.gathered : Bytes(0);
    const Bytes reduced_after = next < runs.size() ? runs[next].whole.being_reduced : Bytes(0);
    // Sections inside a run have equal neighbours: of those the last one finds most kept before it.
    const Bytes kept = run.section->kept;
    const bool alone = run.count == 1;
    if (!alone) raise(chunk, chunk.kept, run, {gathered_before, run.whole.gathered, run.whole.being_reduced});
    if (run.count > 2)
      raise(chunk, chunk.kept + (run.count - 2) * kept, run,
            {run.whole.gathered, run.whole.gathered, run.whole.being_reduced});
    raise(chunk, chunk.kept + (run.count - 1) * kept, run,
          {alone ? gathered_before : run.whole.gathered, gathered_after, reduced_after});
    chunk.kept += run.count * kept;
    gathered_before = run.whole.gathered;
  }
  return chunk;
}

}  // namespace reckon
