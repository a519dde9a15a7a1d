#include "sim/stage_replay.h"

#include <algorithm>
#include <array>
#include <utility>

#include "plan/stage_walk.h"

namespace reckon {
namespace {

/// Listens to a stage's walk, and gives each event the time at which its op ran.
class StageReplay {
 public:
  StageReplay(const Plan& plan, const PlayedStep& step, std::int64_t stage)
      : graph_(step.graph.stages[static_cast<std::size_t>(stage)]),
        spans_(step.spans->spans(step.rank_of_stage(static_cast<int>(stage)), kCompute)) {
    const std::array<SectionBytes, 4> whole = section_bytes(plan);
    for (const WalkCause one : {WalkCause::tokens, WalkCause::received, WalkCause::gathered_weights,
                                WalkCause::whole_gradient, WalkCause::gradient_received})
      outside_[static_cast<std::size_t>(one)] = cause_number(name_of(one));
    for (std::size_t i = 0; i < graph_.plays.size(); ++i)  // by variant: two treatments of each section
      if (graph_.plays[i].times != nullptr) add_section(i, whole[i / 2]);
  }

  const StageEvents& events() const { return events_; }
  StageChanges take() { return {std::move(causes_), std::move(changes_)}; }

  int allocate(Bytes bytes, MemoryCategory category) {
    if (bytes.value <= 0) return -1;
    blocks_.push_back({bytes.value, category});
    const int block = static_cast<int>(blocks_.size()) - 1;
    record(block, ChangeKind::allocate);
    return block;
  }
  void free(int block) { record(block, ChangeKind::free); }
  void keep(int block) {
    if (block >= 0) blocks_[static_cast<std::size_t>(block)].category = MemoryCategory::activations;
    record(block, ChangeKind::keep);
  }

  void cause(const Action& action, std::int64_t layer, WalkCause why) {
    note(action, layer, outside_[static_cast<std::size_t>(why)]);
  }

  /// Runs of the section's ops come in the order in which the graph was built; events follow them.
  void begin(const Action& action, const StageSection& section) {
    action_ = action;
    section_ = section;
    const SectionPlay& play = graph_.play_of(section);
    ops_ = play.times->ops.size();
    recomputed_ = action.kind == ActionKind::backward ? play.kept.recomputed_ops.size() : 0;
    first_run_ = next_run_;
    next_run_ += recomputed_ + ops_;
    again_ = recomputed_ == ops_;
    last_op_ = -1;
  }

  void event(const MemoryEvent& event) {
    again_ = again_ && event.op >= last_op_;
    last_op_ = event.op;
    const auto op = static_cast<std::size_t>(event.op);
    const bool in_order = again_ || action_.kind == ActionKind::forward;
    at_run(graph_.runs[in_order ? first_run_ + op : first_run_ + recomputed_ + (ops_ - 1 - op)], event.allocates);
  }

 private:
  struct Block {
    std::int64_t bytes = 0;
    MemoryCategory category = MemoryCategory::transient;
  };

  static const char* name_of(WalkCause why) {
    switch (why) {
      case WalkCause::tokens: return "tokens";
      case WalkCause::received: return "forward.receive";
      case WalkCause::gathered_weights: return "parameter.all_gather";
      case WalkCause::whole_gradient: return "gradient.reduce_scatter";
      case WalkCause::gradient_received: return "backward.receive";
    }
    return "";
  }

  std::int16_t cause_number(const std::string& name) {
    const auto place = std::find(causes_.begin(), causes_.end(), name);
    if (place != causes_.end()) return static_cast<std::int16_t>(place - causes_.begin());
    causes_.push_back(name);
    return static_cast<std::int16_t>(causes_.size() - 1);
  }

  void add_section(std::size_t variant, const SectionBytes& whole) {
    const SectionPlay& play = graph_.plays[variant];
    const OpList& list = play.times->list;
    events_[variant] = section_events(list, play.kept, whole);
    constexpr std::array<const char*, 3> kPhases = {"forward.", "recompute.", "backward."};
    for (std::size_t phase = 0; phase < kPhases.size(); ++phase)
      for (const Op& op : list.ops)
        op_causes_[variant][phase].push_back(cause_number(kPhases[phase] + std::string(op.name)));
  }

  /// Moves the clock to the start of the op (allocations) or its end (frees); never backwards.
  void at_run(const OpRun& run, bool start) {
    const auto& causes = op_causes_[variant(section_)][static_cast<std::size_t>(run.phase)];
    note(action_, section_.layer, causes[static_cast<std::size_t>(run.op)]);
    const Picoseconds begin = run.first_task < run.end_task ? spans_[static_cast<std::size_t>(run.first_task)].start
                              : run.first_task > 0          ? spans_[static_cast<std::size_t>(run.first_task - 1)].end
                                                            : Picoseconds(0);
    const Picoseconds end =
        run.end_task > run.first_task ? spans_[static_cast<std::size_t>(run.end_task - 1)].end : begin;
    now_ = std::max(now_, start ? begin : end);
  }

  void note(const Action& action, std::int64_t layer, std::int16_t cause) {
    current_.cause = cause;
    current_.micro_batch = action.micro_batch;
    current_.chunk = action.chunk;
    current_.layer = layer;
  }

  void record(int block, ChangeKind kind) {
    if (block < 0) return;
    MemoryChange change = current_;
    change.time = now_;
    change.block = block;
    change.bytes = blocks_[static_cast<std::size_t>(block)].bytes;
    change.kind = kind;
    change.category = blocks_[static_cast<std::size_t>(block)].category;
    changes_.push_back(change);
  }

  const StageGraph& graph_;
  const std::vector<Span>& spans_;
  StageEvents events_;
  std::array<std::array<std::vector<std::int16_t>, 3>, kSectionVariants> op_causes_;  // by variant, phase and op
  std::array<std::int16_t, 5> outside_ = {};                                          // by WalkCause
  std::vector<std::string> causes_;
  std::vector<MemoryChange> changes_;
  std::vector<Block> blocks_;
  MemoryChange current_;
  Picoseconds now_;
  // The section that runs.
  Action action_;
  StageSection section_;
  std::size_t ops_ = 0, recomputed_ = 0, first_run_ = 0, next_run_ = 0;
  bool again_ = false;  // full recomputation: the whole section forward first
  int last_op_ = -1;
};

}  // namespace

StageChanges replay_stage(const Plan& plan, const PlayedStep& step, std::int64_t stage) {
  StageReplay replay(plan, step, stage);
  const auto& chunks = step.graph.stages[static_cast<std::size_t>(stage)].chunks;
  StageWalk<StageReplay>(plan, stage, chunks, replay.events(), replay).run(static_cast<int>(plan.micro_batches()));
  return replay.take();
}

}  // namespace reckon
