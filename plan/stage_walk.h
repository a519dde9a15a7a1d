// The allocations and frees of one pipeline rank, action by action in the order of its schedule: token ids, what
// neighbours send, gathered weights, whole gradients, and the events of its sections (memory_events.h). One walk for
// the allocator's replay (cost_model/allocation_sequence), and for the simulator's memory timeline (sim/stage_replay).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "plan/flat_map.h"
#include "plan/kept_tensors.h"
#include "plan/memory_category.h"
#include "plan/memory_events.h"
#include "plan/pipeline_schedule.h"
#include "plan/stage_sections.h"
#include "plan/stage_units.h"

namespace reckon {

/// What a section does to memory each time it runs.
struct SectionEvents {
  std::vector<MemoryEvent> forward, backward;
  int input = 0, output = 0, input_gradient = 0, output_gradient = 0;  // block numbers
  Bytes input_bytes, output_gradient_bytes;
  bool keeps_input = false;
  SectionBytes whole;
};
SectionEvents section_events(const OpList& list, const KeptSet& kept, const SectionBytes& whole);

/// By variant; empty where a stage has no such section.
using StageEvents = std::array<std::optional<SectionEvents>, kSectionVariants>;

/// Why a stage allocates outside the ops of its sections.
enum class WalkCause { tokens, received, gathered_weights, whole_gradient, gradient_received };

/// Listener:
///   int allocate(Bytes, MemoryCategory)     number of the new block, -1 for no bytes
///   void free(int block)                    -1: nothing
///   void keep(int block)                    a section keeps for its backward what the last one handed on
///   void cause(Action, layer, WalkCause)    of the allocations that follow
///   void begin(Action, StageSection)        the events of a section's forward or backward follow
///   void event(MemoryEvent)                 before each of them
template <class Listener>
class StageWalk {
 public:
  /// All outlive the walk.
  StageWalk(const Plan& plan, std::int64_t stage, const std::vector<ChunkSections>& chunks, const StageEvents& events,
            Listener& listener)
      : plan_(plan), stage_(stage), chunks_(chunks), events_(events), to_(listener) {}

  /// The first `micro_batches` of the step.
  void run(int micro_batches) {
    const auto& parallel = plan_.parallel;
    for (const Action& action :
         pipeline_actions(parallel.schedule, static_cast<int>(parallel.pipeline), static_cast<int>(stage_),
                          static_cast<int>(parallel.chunks), micro_batches)) {
      const ChunkSections& sections = chunks_[static_cast<std::size_t>(action.chunk)];
      Live& live = live_[{action.micro_batch, action.chunk}];
      if (action.kind == ActionKind::forward) {
        forward(action, sections, live);
      } else {
        if (!sections.empty()) backward(action, sections, live);
        to_.free(live.tokens);
        live_.erase({action.micro_batch, action.chunk});
      }
    }
  }

 private:
  using Blocks = FlatMap<int>;  // of a section: number in its event list -> the listener's

  /// One micro-batch in one chunk.
  struct Live {
    std::vector<Blocks> sections;
    int tokens = -1;
  };

  const SectionEvents& events_of(const StageSection& section) const { return *events_[variant(section)]; }

  void forward(const Action& action, const ChunkSections& sections, Live& live) {
    live.sections.resize(sections.size());
    to_.cause(action, kNoLayer, WalkCause::tokens);
    live.tokens = to_.allocate(micro_batch_bytes(plan_), MemoryCategory::activations);
    if (sections.empty()) return;
    to_.cause(action, sections.front().layer, WalkCause::received);
    int handed = to_.allocate(events_of(sections.front()).input_bytes, MemoryCategory::transient);
    int gathered = gather(action, sections.front());
    for (std::size_t i = 0; i < sections.size(); ++i) {
      const int next = i + 1 < sections.size() ? gather(action, sections[i + 1]) : -1;
      const SectionEvents& events = events_of(sections[i]);
      if (events.keeps_input) to_.keep(handed);
      if (handed >= 0) live.sections[i][events.input] = handed;
      play(action, sections[i], events.forward, live.sections[i]);
      to_.free(gathered);
      gathered = next;
      handed = take(live.sections[i], events.output);
    }
    to_.free(handed);  // it has been sent
  }

  void backward(const Action& action, const ChunkSections& sections, Live& live) {
    to_.cause(action, sections.back().layer, WalkCause::gradient_received);
    const SectionEvents& last = events_of(sections.back());
    int handed = last.output_gradient < 0 ? -1 : to_.allocate(last.output_gradient_bytes, MemoryCategory::transient);
    int gathered = gather(action, sections.back());
    int reducing = -1;  // the gradients of the section before, on their way
    for (std::size_t i = sections.size(); i-- > 0;) {
      const int next = i > 0 ? gather(action, sections[i - 1]) : -1;
      const SectionEvents& events = events_of(sections[i]);
      to_.cause(action, sections[i].layer, WalkCause::whole_gradient);
      const int made = to_.allocate(events.whole.gradient - events.whole.being_reduced, MemoryCategory::transient);
      const int reduced_next = to_.allocate(events.whole.being_reduced, MemoryCategory::transient);
      Blocks& blocks = live.sections[i];
      if (handed >= 0) blocks[events.output_gradient] = handed;
      play(action, sections[i], events.backward, blocks);
      to_.free(made);
      to_.free(reducing);
      reducing = reduced_next;
      to_.free(gathered);
      gathered = next;
      handed = take(blocks, events.input_gradient);
      if (blocks.begin() != blocks.end())
        throw std::logic_error("a section leaves memory allocated after its backward");
    }
    to_.free(reducing);
    to_.free(handed);  // it has been sent
  }

  int gather(const Action& action, const StageSection& section) {
    to_.cause(action, section.layer, WalkCause::gathered_weights);
    return to_.allocate(events_of(section).whole.gathered, MemoryCategory::transient);
  }

  void play(const Action& action, const StageSection& section, const std::vector<MemoryEvent>& events, Blocks& blocks) {
    to_.begin(action, section);
    for (const MemoryEvent& event : events) {
      to_.event(event);
      if (event.allocates)
        blocks[event.block] =
            to_.allocate(event.bytes, event.kept ? MemoryCategory::activations : MemoryCategory::transient);
      else to_.free(take(blocks, event.block));
    }
  }

  /// What a section hands on or frees is no longer its own; -1 for block -1.
  static int take(Blocks& blocks, int number) {
    if (number < 0) return -1;
    const auto found = blocks.find(number);
    if (found == blocks.end()) throw std::logic_error("a section frees a block that it does not hold");
    const int block = found->second;
    blocks.erase(found);
    return block;
  }

  const Plan& plan_;
  std::int64_t stage_;
  const std::vector<ChunkSections>& chunks_;
  const StageEvents& events_;
  Listener& to_;
  std::map<std::pair<int, int>, Live> live_;
};

}  // namespace reckon
