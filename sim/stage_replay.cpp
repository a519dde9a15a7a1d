#include "sim/stage_replay.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "plan/memory_events.h"
#include "plan/stage_units.h"

namespace reckon {
namespace {

/// Events of one kind of section, worked out once.
struct SectionEvents {
  std::vector<MemoryEvent> forward, backward;
  bool keeps_input = false;
  SectionBytes whole;
  std::array<std::vector<std::int16_t>, 3> causes;  // by phase and op
};

class StageReplay {
 public:
  StageReplay(const Plan& plan, const PlayedStep& step, std::int64_t stage)
      : plan_(plan),
        graph_(step.graph.stages[static_cast<std::size_t>(stage)]),
        spans_(step.spans->spans(step.rank_of_stage(static_cast<int>(stage)), kCompute)),
        stage_(stage),
        events_(graph_.plays.size()) {
    tokens_ = cause("tokens");
    gathered_ = cause("parameter.all_gather");
    whole_gradient_ = cause("gradient.reduce_scatter");
    received_ = cause("forward.receive");
    gradient_received_ = cause("backward.receive");
    const std::array<SectionBytes, 4> whole = section_bytes(plan);
    for (std::size_t i = 0; i < events_.size(); ++i)  // by variant: two treatments of each section
      if (graph_.plays[i].times != nullptr) events_[i] = section_events(graph_.plays[i], whole[i / 2]);
  }

  StageChanges run() {
    const auto& parallel = plan_.parallel;
    for (const Action& action :
         pipeline_actions(parallel.schedule, static_cast<int>(parallel.pipeline), static_cast<int>(stage_),
                          static_cast<int>(parallel.chunks), static_cast<int>(plan_.micro_batches())))
      action.kind == ActionKind::forward ? forward(action) : backward(action);
    return {std::move(causes_), std::move(changes_)};
  }

 private:
  struct Live {
    std::int32_t block = 0;
    std::int64_t bytes = 0;
    MemoryCategory category = MemoryCategory::transient;
  };
  /// Blocks of one section of one micro-batch, by their number in its event list.
  using LiveBlocksOfSection = std::unordered_map<int, Live>;

  std::int16_t cause(const std::string& name) {
    const auto place = std::find(causes_.begin(), causes_.end(), name);
    if (place != causes_.end()) return static_cast<std::int16_t>(place - causes_.begin());
    causes_.push_back(name);
    return static_cast<std::int16_t>(causes_.size() - 1);
  }

  SectionEvents section_events(const SectionPlay& play, const SectionBytes& whole) {
    const OpList& list = play.times->list;
    SectionEvents events;
    events.forward = forward_events(list, play.kept);
    events.backward = backward_events(list, play.kept);
    events.keeps_input = input_is_kept(list, play.kept);
    events.whole = whole;
    constexpr std::array<const char*, 3> kPhases = {"forward.", "recompute.", "backward."};
    for (std::size_t phase = 0; phase < kPhases.size(); ++phase)
      for (const Op& op : list.ops) events.causes[phase].push_back(cause(kPhases[phase] + std::string(op.name)));
    return events;
  }

  const SectionPlay& play_of(const StageSection& section) const { return graph_.play_of(section); }
  const OpList& list_of(const StageSection& section) const { return play_of(section).times->list; }

  LiveBlocksOfSection& live(const Action& action, std::size_t section) {
    return live_[{action.micro_batch, action.chunk, static_cast<int>(section)}];
  }

  const SectionEvents& events_of(const StageSection& section) const { return events_[variant(section)]; }

  void forward(const Action& action) {
    const auto& sections = graph_.chunks[static_cast<std::size_t>(action.chunk)];
    note(action, kNoLayer, tokens_);
    micro_batches_[{action.micro_batch, action.chunk}] =
        allocate(micro_batch_bytes(plan_).value, MemoryCategory::activations);
    if (sections.empty()) return;
    note(action, sections.front().layer, received_);
    Live handed = allocate(input_bytes(list_of(sections.front())).value, MemoryCategory::transient);
    Live gathered = gather(action, sections.front());
    for (std::size_t i = 0; i < sections.size(); ++i) {
      const Live next = i + 1 < sections.size() ? gather(action, sections[i + 1]) : Live{};
      LiveBlocksOfSection& blocks = live(action, i);
      const OpList& list = list_of(sections[i]);
      if (events_of(sections[i]).keeps_input) keep(handed);
      if (handed.bytes > 0) blocks[input_block(list)] = handed;
      play_events(action, sections[i], events_of(sections[i]).forward, blocks, Phase::forward);
      free(gathered);
      gathered = next;
      if (const int output = output_block(list); output >= 0) {
        handed = blocks.at(output);
        blocks.erase(output);
      }
    }
    if (action.chunk * plan_.parallel.pipeline + stage_ + 1 < plan_.virtual_stages()) free(handed);  // it has been sent
  }

  void backward(const Action& action) {
    const auto& sections = graph_.chunks[static_cast<std::size_t>(action.chunk)];
    if (!sections.empty()) backward(action, sections);
    const auto tokens = micro_batches_.find({action.micro_batch, action.chunk});
    free(tokens->second);
    micro_batches_.erase(tokens);
  }

  void backward(const Action& action, const std::vector<StageSection>& sections) {
    note(action, sections.back().layer, gradient_received_);
    Live handed = allocate(output_gradient_bytes(list_of(sections.back())).value, MemoryCategory::transient);
    Live gathered = gather(action, sections.back());
    Live reducing;  // the gradients of the section before, on their way
    for (std::size_t i = sections.size(); i-- > 0;) {
      const Live next = i > 0 ? gather(action, sections[i - 1]) : Live{};
      note(action, sections[i].layer, whole_gradient_);
      const SectionBytes& own = events_of(sections[i]).whole;
      const Live made = allocate((own.gradient - own.being_reduced).value, MemoryCategory::transient);
      const Live reduced_next = allocate(own.being_reduced.value, MemoryCategory::transient);
      LiveBlocksOfSection& blocks = live(action, i);
      if (handed.bytes > 0) blocks[output_gradient_block(list_of(sections[i]))] = handed;
      play_events(action, sections[i], events_of(sections[i]).backward, blocks, Phase::backward);
      free(made);
      free(reducing);
      reducing = reduced_next;
      free(gathered);
      gathered = next;
      handed = {};
      if (const int gradient = input_gradient_block(list_of(sections[i])); gradient >= 0) {
        handed = blocks.at(gradient);
        blocks.erase(gradient);
      }
      if (!blocks.empty()) throw std::logic_error("a section leaves memory allocated after its backward");
    }
    free(reducing);
    free(handed);  // it has been sent
  }

  Live gather(const Action& action, const StageSection& section) {
    note(action, section.layer, gathered_);
    return allocate(events_of(section).whole.gathered.value, MemoryCategory::transient);
  }

  /// Runs of the section's ops come in the order in which the graph was built; events follow them.
  void play_events(const Action& action, const StageSection& section, const std::vector<MemoryEvent>& events,
                   LiveBlocksOfSection& blocks, Phase phase) {
    const SectionPlay& play = play_of(section);
    const std::size_t ops = play.times->ops.size();
    const std::size_t recomputed = phase == Phase::backward ? play.kept.recomputed_ops.size() : 0;
    const std::size_t first = next_run_;
    next_run_ += recomputed + ops;
    bool again = recomputed == ops;  // full recomputation: the whole section forward first
    int before = -1;
    for (const MemoryEvent& event : events) {
      again = again && event.op >= before;
      before = event.op;
      const auto op = static_cast<std::size_t>(event.op);
      const std::size_t run = phase == Phase::forward ? first + op
                              : again                 ? first + op
                                                      : first + recomputed + (ops - 1 - op);
      at_run(action, section, graph_.runs[run], event.allocates);
      if (event.allocates)
        blocks[event.block] =
            allocate(event.bytes.value, event.kept ? MemoryCategory::activations : MemoryCategory::transient);
      else release(blocks, event.block);
    }
  }

  void release(LiveBlocksOfSection& blocks, int block) {
    const auto found = blocks.find(block);
    if (found == blocks.end()) throw std::logic_error("memory events free a block that is not allocated");
    free(found->second);
    blocks.erase(found);
  }

  /// Moves the clock to the start of the op (allocations) or its end (frees); never backwards.
  void at_run(const Action& action, const StageSection& section, const OpRun& run, bool start) {
    const SectionEvents& events = events_[variant(section)];
    note(action, section.layer, events.causes[static_cast<std::size_t>(run.phase)][static_cast<std::size_t>(run.op)]);
    const Picoseconds begin = run.first_task < run.end_task ? spans_[static_cast<std::size_t>(run.first_task)].start
                              : run.first_task > 0          ? spans_[static_cast<std::size_t>(run.first_task - 1)].end
                                                            : Picoseconds(0);
    const Picoseconds end =
        run.end_task > run.first_task ? spans_[static_cast<std::size_t>(run.end_task - 1)].end : begin;
    now_ = std::max(now_, start ? begin : end);
  }

  void note(const Action& action, std::int64_t layer, std::int16_t cause_index) {
    current_.cause = cause_index;
    current_.micro_batch = action.micro_batch;
    current_.chunk = action.chunk;
    current_.layer = layer;
  }

  void record(const Live& block, ChangeKind kind) {
    if (block.bytes == 0) return;
    MemoryChange change = current_;
    change.time = now_;
    change.block = block.block;
    change.bytes = block.bytes;
    change.kind = kind;
    change.category = block.category;
    changes_.push_back(change);
  }

  Live allocate(std::int64_t bytes, MemoryCategory category) {
    const Live block{next_block_++, bytes, category};
    record(block, ChangeKind::allocate);
    return block;
  }

  void free(const Live& block) { record(block, ChangeKind::free); }

  /// The next section keeps what the last one handed on.
  void keep(Live& block) {
    block.category = MemoryCategory::activations;
    record(block, ChangeKind::keep);
  }

  const Plan& plan_;
  const StageGraph& graph_;
  const std::vector<Span>& spans_;
  std::int64_t stage_;
  std::vector<SectionEvents> events_;
  std::vector<MemoryChange> changes_;
  std::vector<std::string> causes_;
  std::map<std::array<int, 3>, LiveBlocksOfSection> live_;  // micro-batch, chunk, section
  std::int16_t tokens_ = 0, gathered_ = 0, whole_gradient_ = 0, received_ = 0, gradient_received_ = 0;
  std::map<std::pair<int, int>, Live> micro_batches_;  // token ids and targets, by micro-batch and chunk
  MemoryChange current_;
  Picoseconds now_;
  std::size_t next_run_ = 0;
  std::int32_t next_block_ = 0;
};

}  // namespace

StageChanges replay_stage(const Plan& plan, const PlayedStep& step, std::int64_t stage) {
  return StageReplay(plan, step, stage).run();
}

}  // namespace reckon
