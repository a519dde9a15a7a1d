#include "cost_model/allocation_sequence.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>

#include "cost_model/stage_states.h"
#include "plan/caching_allocator.h"
#include "plan/flat_map.h"
#include "plan/kept_tensors.h"
#include "plan/memory_events.h"
#include "plan/pipeline_schedule.h"
#include "plan/stage_sections.h"
#include "plan/stage_units.h"

namespace reckon {

namespace {

/// What a section does each time it runs.
struct SectionEvents {
  std::vector<MemoryEvent> forward, backward;
  int input = 0, output = 0, input_gradient = 0, output_gradient = 0;  // block numbers
  Bytes input_bytes, output_gradient_bytes;
  bool keeps_input = false;
  SectionBytes whole;
};

SectionEvents section_events(const Plan& plan, const AttentionWork& work, const StageSection& section,
                             std::int64_t stage, const SectionBytes& whole) {
  const OpList list = section_ops(plan, section.kind, work);
  const KeptSet kept = kept_tensors(plan, list, section.recomputed ? plan.activations.recompute : Recompute::none,
                                    static_cast<int>(stage));
  SectionEvents events;
  events.forward = forward_events(list, kept);
  events.backward = backward_events(list, kept);
  events.input = input_block(list);
  events.output = output_block(list);
  events.input_gradient = input_gradient_block(list);
  events.output_gradient = output_gradient_block(list);
  events.input_bytes = input_bytes(list);
  events.output_gradient_bytes = output_gradient_bytes(list);
  events.keeps_input = input_is_kept(list, kept);
  events.whole = whole;
  return events;
}

class SequenceBuilder {
 public:
  SequenceBuilder(const Plan& plan, const AttentionWork& work, std::int64_t stage) : stage_(stage), plan_(plan) {
    const std::array<SectionBytes, 4> whole = section_bytes(plan);
    const std::vector<ChunkSections> chunks = stage_sections(plan, stage);
    for (const ChunkSections& sections : chunks) {
      chunks_.emplace_back();
      for (const StageSection& section : sections) {
        auto& events = events_[variant(section)];
        if (!events) events = section_events(plan, work, section, stage, whole[static_cast<std::size_t>(section.kind)]);
        chunks_.back().push_back(&*events);
      }
    }
    add_states(stage_states(plan, stage), stage_buffers(plan, stage));
    allocate(constant_bytes(plan), MemoryCategory::transient);
  }

  std::vector<Allocation> build() {
    const auto& parallel = plan_.parallel;
    const auto stages = static_cast<int>(parallel.pipeline);
    const auto all = static_cast<int>(plan_.micro_batches());
    const bool gpipe = parallel.schedule == ScheduleKind::gpipe;
    const int steady = parallel.schedule == ScheduleKind::interleaved ? 4 * stages : stages + 2;
    const int walked = gpipe ? all : std::min(all, steady);
    reserve(walked);
    for (const Action& action : pipeline_actions(parallel.schedule, stages, static_cast<int>(stage_),
                                                 static_cast<int>(parallel.chunks), walked)) {
      if (action.kind == ActionKind::forward) forward(action);
      else backward(action);
    }
    return std::move(sequence_);
  }

 private:
  /// Blocks of one micro-batch in one chunk: section position -> block number -> block of the sequence.
  struct Live {
    std::vector<FlatMap<int>> sections;
    int tokens = -1;
  };

  /// Room for `micro_batches` through every chunk: events, and about ten allocations around each section.
  void reserve(int micro_batches) {
    std::size_t events = 16;
    for (const auto& sections : chunks_)
      for (const SectionEvents* section : sections) events += section->forward.size() + section->backward.size() + 10;
    sequence_.reserve(events * static_cast<std::size_t>(micro_batches));
    sizes_.reserve(sequence_.capacity() / 2);
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

  /// Master weights and both moments are buffers of their own.
  void add_states(const StateMemory& states, Bytes buffers) {
    allocate(states.parameters, MemoryCategory::parameters);
    allocate(states.gradients, MemoryCategory::gradients);
    allocate(states.master, MemoryCategory::optimizer);
    allocate((states.optimizer - states.master) / 2, MemoryCategory::optimizer);
    allocate((states.optimizer - states.master) / 2, MemoryCategory::optimizer);
    allocate(buffers, MemoryCategory::communication);
  }

  void play(const std::vector<MemoryEvent>& events, FlatMap<int>& blocks) {
    for (const MemoryEvent& event : events) {
      if (event.allocates) {
        blocks[event.block] =
            allocate(event.bytes, event.kept ? MemoryCategory::activations : MemoryCategory::transient);
      } else {
        const auto found = blocks.find(event.block);
        if (found == blocks.end()) throw std::logic_error("a section frees a block that it does not hold");
        free(found->second);
        blocks.erase(found);
      }
    }
  }

  void forward(const Action& action) {
    const auto& sections = chunks_[static_cast<std::size_t>(action.chunk)];
    Live& live = live_[{action.micro_batch, action.chunk}];
    live.sections.resize(sections.size());
    live.tokens = allocate(micro_batch_bytes(plan_), MemoryCategory::activations);
    if (sections.empty()) return;
    live.sections[0][sections[0]->input] = allocate(
        sections[0]->input_bytes, sections[0]->keeps_input ? MemoryCategory::activations : MemoryCategory::transient);
    std::vector<int> gathered(sections.size() + 1, -1);
    gathered[0] = allocate(sections[0]->whole.gathered, MemoryCategory::transient);
    for (std::size_t i = 0; i < sections.size(); ++i) {
      if (i + 1 < sections.size())
        gathered[i + 1] = allocate(sections[i + 1]->whole.gathered, MemoryCategory::transient);
      play(sections[i]->forward, live.sections[i]);
      free(gathered[i]);
      if (sections[i]->output < 0) continue;
      const auto output = live.sections[i].find(sections[i]->output);
      const int block = output->second;
      live.sections[i].erase(output);
      if (i + 1 < sections.size()) live.sections[i + 1][sections[i + 1]->input] = block;
      else free(block);  // sent on
    }
  }

  void backward(const Action& action) {
    const auto& sections = chunks_[static_cast<std::size_t>(action.chunk)];
    Live& live = live_[{action.micro_batch, action.chunk}];
    int gradient = -1;
    if (sections.empty()) {
      free(live.tokens);
      live_.erase({action.micro_batch, action.chunk});
      return;
    }
    if (sections.back()->output_gradient >= 0)
      gradient = allocate(sections.back()->output_gradient_bytes, MemoryCategory::transient);
    int gathered = allocate(sections.back()->whole.gathered, MemoryCategory::transient);
    int reducing = -1;  // the gradients of the section before, on their way
    for (std::size_t i = sections.size(); i-- > 0;) {
      auto& blocks = live.sections[i];
      const int next = i > 0 ? allocate(sections[i - 1]->whole.gathered, MemoryCategory::transient) : -1;
      const SectionBytes& own = sections[i]->whole;
      const int made = allocate(own.gradient - own.being_reduced, MemoryCategory::transient);
      const int reduced_next = allocate(own.being_reduced, MemoryCategory::transient);
      if (sections[i]->output_gradient >= 0) blocks[sections[i]->output_gradient] = gradient;
      play(sections[i]->backward, blocks);
      free(made);
      free(reducing);
      reducing = reduced_next;
      free(gathered);
      gathered = next;
      gradient = -1;
      if (sections[i]->input_gradient < 0) continue;  // token ids
      const auto handed_on = blocks.find(sections[i]->input_gradient);
      gradient = handed_on->second;
      blocks.erase(handed_on);
    }
    free(reducing);
    free(gradient);  // sent back
    free(live.tokens);
    live_.erase({action.micro_batch, action.chunk});
  }

  std::int64_t stage_;
  const Plan& plan_;
  std::array<std::optional<SectionEvents>, kSectionVariants> events_;  // by variant
  std::vector<std::vector<const SectionEvents*>> chunks_;
  std::vector<std::pair<Bytes, MemoryCategory>> sizes_;
  std::vector<Allocation> sequence_;
  std::map<std::pair<int, int>, Live> live_;
};

}  // namespace

std::vector<Allocation> allocation_sequence(const Plan& plan, const AttentionWork& work, std::int64_t stage) {
  return SequenceBuilder(plan, work, stage).build();
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
