#include "cost_model/allocation_sequence.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cost_model/stage_states.h"
#include "plan/caching_allocator.h"
#include "plan/kept_tensors.h"
#include "plan/stage_walk.h"

namespace reckon {

namespace {

StageEvents stage_events(const Plan& plan, const AttentionWork& work, std::int64_t stage,
                         const std::vector<ChunkSections>& chunks) {
  const std::array<SectionBytes, 4> whole = section_bytes(plan);
  StageEvents events;
  for (const ChunkSections& sections : chunks)
    for (const StageSection& section : sections) {
      auto& known = events[variant(section)];
      if (known) continue;
      const OpList list = section_ops(plan, section.kind, work);
      const Recompute recompute = section.recomputed ? plan.activations.recompute : Recompute::none;
      known = section_events(list, kept_tensors(plan, list, recompute, static_cast<int>(stage)),
                             whole[static_cast<std::size_t>(section.kind)]);
    }
  return events;
}

/// Listens to a stage's walk and writes it down.
class SequenceWriter {
 public:
  explicit SequenceWriter(std::size_t expected) {
    sequence_.reserve(expected);
    sizes_.reserve(expected / 2);
  }

  int allocate(Bytes bytes, MemoryCategory category) {
    if (bytes.value <= 0) return -1;
    sizes_.push_back({bytes, category});
    const int block = static_cast<int>(sizes_.size()) - 1;
    sequence_.push_back({true, block, bytes, category});
    return block;
  }
  void free(int block) {
    if (block < 0) return;
    sequence_.push_back(
        {false, block, sizes_[static_cast<std::size_t>(block)].first, sizes_[static_cast<std::size_t>(block)].second});
  }
  void keep(int) {}  // the allocator does not care
  void cause(const Action&, std::int64_t, WalkCause) {}
  void begin(const Action&, const StageSection&) {}
  void event(const MemoryEvent&) {}

  /// Master weights and both moments are buffers of their own.
  void add_states(const StateMemory& states, Bytes buffers) {
    allocate(states.parameters, MemoryCategory::parameters);
    allocate(states.gradients, MemoryCategory::gradients);
    allocate(states.master, MemoryCategory::optimizer);
    allocate((states.optimizer - states.master) / 2, MemoryCategory::optimizer);
    allocate((states.optimizer - states.master) / 2, MemoryCategory::optimizer);
    allocate(buffers, MemoryCategory::communication);
  }

  std::vector<Allocation> take() { return std::move(sequence_); }

 private:
  std::vector<std::pair<Bytes, MemoryCategory>> sizes_;
  std::vector<Allocation> sequence_;
};

/// Micro-batches up to the schedule's steady state.
int steady_micro_batches(const Plan& plan) {
  const auto stages = static_cast<int>(plan.parallel.pipeline);
  const auto all = static_cast<int>(plan.micro_batches());
  if (plan.parallel.schedule == ScheduleKind::gpipe) return all;
  return std::min(all, plan.parallel.schedule == ScheduleKind::interleaved ? 4 * stages : stages + 2);
}

/// Events, and about ten allocations around each section.
std::size_t events_a_micro_batch(const std::vector<ChunkSections>& chunks, const StageEvents& events) {
  std::size_t count = 16;
  for (const ChunkSections& sections : chunks)
    for (const StageSection& section : sections) {
      const SectionEvents& one = *events[variant(section)];
      count += one.forward.size() + one.backward.size() + 10;
    }
  return count;
}

}  // namespace

std::vector<Allocation> allocation_sequence(const Plan& plan, const AttentionWork& work, std::int64_t stage) {
  const std::vector<ChunkSections> chunks = stage_sections(plan, stage);
  const StageEvents events = stage_events(plan, work, stage, chunks);
  const int micro_batches = steady_micro_batches(plan);
  SequenceWriter writer(events_a_micro_batch(chunks, events) * static_cast<std::size_t>(micro_batches));
  writer.add_states(stage_states(plan, stage), stage_buffers(plan, stage));
  writer.allocate(constant_bytes(plan), MemoryCategory::transient);
  StageWalk<SequenceWriter>(plan, stage, chunks, events, writer).run(micro_batches);
  return writer.take();
}

Bytes peak_allocated(const std::vector<Allocation>& sequence) {
  Bytes now, highest;
  for (const Allocation& a : sequence) {
    now += a.allocates ? a.bytes : -a.bytes;
    highest = std::max(highest, now);
  }
  return highest;
}

Bytes peak_reserved(const std::vector<Allocation>& sequence) {
  CachingAllocator allocator;
  std::vector<CachingAllocator::Block> blocks;  // by number: the sequence counts them from 0
  for (const Allocation& a : sequence) {
    const auto block = static_cast<std::size_t>(a.block);
    if (a.allocates) {
      blocks.resize(std::max(blocks.size(), block + 1));
      blocks[block] = allocator.allocate(a.bytes).value();
    } else {
      allocator.free(blocks.at(block));
    }
  }
  return allocator.peak_reserved();
}

const Allocation* first_refused(const std::vector<Allocation>& sequence, Bytes limit) {
  Bytes now;
  for (const Allocation& a : sequence) {
    now += a.allocates ? a.bytes : -a.bytes;
    if (a.allocates && now > limit) return &a;
  }
  return nullptr;
}

}  // namespace reckon
