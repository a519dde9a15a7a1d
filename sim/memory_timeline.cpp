#include "sim/memory_timeline.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "plan/caching_allocator.h"
#include "plan/memory_events.h"

namespace reckon {
namespace {

std::size_t at(MemoryCategory category) {
  return static_cast<std::size_t>(category);
}

std::int64_t total(const BytesByCategory& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

/// Events of one kind of section, worked out once.
struct SectionEvents {
  std::vector<MemoryEvent> forward, backward;
  bool keeps_input = false;
  Bytes gathered, whole_gradient;                   // ZeRO-3 weights, ZeRO-2 gradient
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
    for (std::size_t i = 0; i < events_.size(); ++i)
      if (graph_.plays[i].times != nullptr) events_[i] = section_events(graph_.plays[i]);
  }

  void run(MemoryTimeline& timeline) {
    const auto& parallel = plan_.parallel;
    for (const Action& action :
         pipeline_actions(parallel.schedule, static_cast<int>(parallel.pipeline), static_cast<int>(stage_),
                          static_cast<int>(parallel.chunks), static_cast<int>(plan_.micro_batches())))
      action.kind == ActionKind::forward ? forward(action) : backward(action);
    timeline.changes = std::move(changes_);
    timeline.causes = std::move(causes_);
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

  SectionEvents section_events(const SectionPlay& play) {
    const OpList& list = play.times->list;
    SectionEvents events;
    events.forward = forward_events(list, play.kept);
    events.backward = backward_events(list, play.kept);
    events.keeps_input = input_is_kept(list, play.kept);
    if (plan_.parallel.zero >= 3) events.gathered = storage_bytes({tensor_format(plan_)}, play.weights);
    if (plan_.parallel.zero >= 2)
      events.whole_gradient =
          storage_bytes({plan_.gradients.stored, plan_.activations.block, plan_.activations.scale}, play.weights);
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

  const SectionEvents& events_of(const StageSection& section) const { return events_[StageGraph::play_index(section)]; }

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
      if (events_of(sections[i]).keeps_input) recategorize(handed, MemoryCategory::activations);
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
    for (std::size_t i = sections.size(); i-- > 0;) {
      const Live next = i > 0 ? gather(action, sections[i - 1]) : Live{};
      note(action, sections[i].layer, whole_gradient_);
      const Live whole = allocate(events_of(sections[i]).whole_gradient.value, MemoryCategory::transient);
      LiveBlocksOfSection& blocks = live(action, i);
      if (handed.bytes > 0) blocks[output_gradient_block(list_of(sections[i]))] = handed;
      play_events(action, sections[i], events_of(sections[i]).backward, blocks, Phase::backward);
      free(whole);
      free(gathered);
      gathered = next;
      handed = {};
      if (const int gradient = input_gradient_block(list_of(sections[i])); gradient >= 0) {
        handed = blocks.at(gradient);
        blocks.erase(gradient);
      }
      if (!blocks.empty()) throw std::logic_error("a section leaves memory allocated after its backward");
    }
    free(handed);  // it has been sent
  }

  Live gather(const Action& action, const StageSection& section) {
    note(action, section.layer, gathered_);
    return allocate(events_of(section).gathered.value, MemoryCategory::transient);
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
    const SectionEvents& events = events_[StageGraph::play_index(section)];
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

  void record(const Live& block, bool allocates, MemoryCategory category) {
    if (block.bytes == 0) return;
    MemoryChange change = current_;
    change.time = now_;
    change.block = block.block;
    change.bytes = block.bytes;
    change.allocates = allocates;
    change.category = category;
    changes_.push_back(change);
  }

  Live allocate(std::int64_t bytes, MemoryCategory category) {
    const Live block{next_block_++, bytes, category};
    record(block, true, category);
    return block;
  }

  void free(const Live& block) { record(block, false, block.category); }

  /// The next section keeps what the last one handed on: it counts as an activation from the start.
  void recategorize(Live& block, MemoryCategory category) {
    block.category = category;
    if (block.bytes == 0) return;
    const auto allocation = std::find_if(changes_.rbegin(), changes_.rend(), [&](const MemoryChange& change) {
      return change.block == block.block && change.allocates;
    });
    allocation->category = category;
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

/// Bytes of a change with its sign.
std::int64_t signed_bytes(const MemoryChange& change) {
  return change.allocates ? change.bytes : -change.bytes;
}

void find_peak(MemoryTimeline& timeline) {
  BytesByCategory now = timeline.always;
  timeline.at_peak = now;
  std::int64_t sum = total(now), peak = sum;
  for (std::size_t i = 0; i < timeline.changes.size(); ++i) {
    const MemoryChange& change = timeline.changes[i];
    now[at(change.category)] += signed_bytes(change);
    sum += signed_bytes(change);
    if (sum <= peak) continue;
    peak = sum;
    timeline.at_peak = now;
    timeline.peak_change = static_cast<std::int32_t>(i);
    timeline.peak_time = change.time;
  }
  timeline.peak = Bytes(peak);
  timeline.left_over = Bytes(sum - total(timeline.always));
}

/// Puts the timeline through an allocator, which refuses what does not fit.
class AllocatorReplay {
 public:
  AllocatorReplay(bool caching, Bytes limit) : caching_(caching), limit_(limit), allocator_(limit) {}

  bool allocate_always(const BytesByCategory& always) {
    for (const std::int64_t bytes : always)
      if (bytes > 0 && !allocate(-1, bytes)) return false;
    return true;
  }
  bool apply(const MemoryChange& change) {
    if (change.allocates) return allocate(change.block, change.bytes);
    allocated_ -= change.bytes;
    if (!caching_) return true;
    allocator_.free(blocks_.at(change.block));
    blocks_.erase(change.block);
    return true;
  }
  Bytes allocated() const { return Bytes(allocated_); }
  Bytes reserved() const { return caching_ ? allocator_.reserved() : Bytes(allocated_); }
  Bytes peak_reserved() const { return caching_ ? allocator_.peak_reserved() : Bytes(peak_); }

 private:
  bool allocate(std::int32_t block, std::int64_t bytes) {
    if (caching_) {
      const auto taken = allocator_.allocate(Bytes(bytes));
      if (!taken) return false;
      if (block >= 0) blocks_[block] = *taken;
    } else if (bytes > limit_.value - allocated_) {
      return false;
    }
    allocated_ += bytes;
    peak_ = std::max(peak_, allocated_);
    return true;
  }

  bool caching_;
  Bytes limit_;
  CachingAllocator allocator_;
  std::unordered_map<std::int32_t, CachingAllocator::Block> blocks_;
  std::int64_t allocated_ = 0, peak_ = 0;
};

Bytes peak_reserved(const Plan& plan, const MemoryTimeline& timeline) {
  AllocatorReplay replay(!plan.hardware.device.is_cpu, Bytes(std::numeric_limits<std::int64_t>::max()));
  replay.allocate_always(timeline.always);
  for (const MemoryChange& change : timeline.changes) replay.apply(change);
  return replay.peak_reserved();
}

}  // namespace

MemoryTimeline memory_timeline(const Plan& plan, const PlayedStep& step, std::int64_t stage,
                               const StageMemory& states) {
  MemoryTimeline timeline;
  timeline.stage = stage;
  timeline.rank = step.cluster.ranks[static_cast<std::size_t>(step.rank_of_stage(static_cast<int>(stage)))];
  timeline.always = {states.parameters.value,    states.gradients.value,    states.optimizer.value, 0,
                     constant_bytes(plan).value, states.communication.value};
  StageReplay(plan, step, stage).run(timeline);
  find_peak(timeline);
  timeline.peak_reserved = peak_reserved(plan, timeline);
  return timeline;
}

std::vector<BytesByCategory> bytes_over_time(const MemoryTimeline& timeline) {
  std::vector<BytesByCategory> sums;
  sums.reserve(timeline.changes.size());
  BytesByCategory now = timeline.always;
  for (const MemoryChange& change : timeline.changes) {
    now[at(change.category)] += signed_bytes(change);
    sums.push_back(now);
  }
  return sums;
}

std::vector<LiveBlocks> alive_at_peak(const MemoryTimeline& timeline) {
  std::unordered_map<std::int32_t, const MemoryChange*> alive;
  for (std::int32_t i = 0; i <= timeline.peak_change; ++i) {
    const MemoryChange& change = timeline.changes[static_cast<std::size_t>(i)];
    if (change.allocates) alive[change.block] = &change;
    else alive.erase(change.block);
  }
  std::map<std::pair<MemoryCategory, std::int16_t>, std::pair<LiveBlocks, std::set<int>>> groups;
  for (const auto& [block, change] : alive) {
    auto& [row, micro_batches] = groups[{change->category, change->cause}];
    row.category = change->category;
    row.cause = timeline.causes[static_cast<std::size_t>(change->cause)];
    ++row.blocks;
    row.bytes += Bytes(change->bytes);
    micro_batches.insert(change->micro_batch);
    row.micro_batches = static_cast<int>(micro_batches.size());
  }
  std::vector<LiveBlocks> rows;
  for (std::size_t category = 0; category < kMemoryCategories; ++category)
    if (timeline.always[category] > 0)
      rows.push_back({static_cast<MemoryCategory>(category), "always", 1, 0, Bytes(timeline.always[category])});
  for (const auto& [key, group] : groups) rows.push_back(group.first);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const LiveBlocks& a, const LiveBlocks& b) { return a.bytes > b.bytes; });
  return rows;
}

std::optional<OutOfMemory> first_overflow(const Plan& plan, const MemoryTimeline& timeline, Bytes limit) {
  OutOfMemory overflow;
  overflow.stage = timeline.stage;
  overflow.rank = timeline.rank;
  overflow.limit = limit;
  AllocatorReplay replay(!plan.hardware.device.is_cpu, limit);
  const auto at_limit = [&] {
    overflow.allocated = replay.allocated();
    overflow.reserved = replay.reserved();
    return overflow;
  };
  if (!replay.allocate_always(timeline.always)) {
    const auto largest = std::max_element(timeline.always.begin(), timeline.always.end());
    overflow.category = static_cast<MemoryCategory>(largest - timeline.always.begin());
    overflow.asked = Bytes(total(timeline.always));
    return at_limit();
  }
  for (const MemoryChange& change : timeline.changes) {
    if (replay.apply(change)) continue;
    overflow.time = change.time;
    overflow.op = timeline.causes[static_cast<std::size_t>(change.cause)];
    overflow.category = change.category;
    overflow.micro_batch = change.micro_batch;
    overflow.layer = change.layer;
    overflow.asked = Bytes(change.bytes);
    return at_limit();
  }
  return std::nullopt;
}

}  // namespace reckon
