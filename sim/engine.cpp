#include "sim/engine.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include <fmt/format.h>

#include "sim/event_queue.h"
#include "sim/link_shares.h"

namespace reckon {
namespace {

/// Progress of something that runs: work of one stream, or a transfer of one communicator.
struct Activity {
  double remaining = 0.0;  // picoseconds at full speed
  double rate = 0.0;       // 0: not settled yet
  std::int64_t since = 0;  // instant up to which `remaining` is exact
  std::int64_t start = 0;
  std::uint32_t version = 0;
  bool dirty = false;
};

enum class StreamState : std::uint8_t { idle, arrived, running };

struct Rank {
  std::array<std::int32_t, kCounters> done{};
  std::array<std::int64_t, kStreams> arrival{};
  std::array<StreamState, kStreams> state{};
  std::int16_t working = 0;            // work tasks that run
  std::int16_t moving = 0;             // disturbing transfers that move
  bool worked = false, moved = false;  // the same as of the last settling
  bool dirty = false;
};

struct TransferState {
  std::int32_t arrived = 0;          // members
  std::int32_t working_members = 0;  // members that work, as of the last settling
  std::int64_t duration = 0;         // the longest that a member asks for
  bool settled = false;              // it moves, and `working_members` is valid
};

constexpr double kLastInstant = 9.2e18;  // picoseconds; the integers end a little later

class Engine {
 public:
  Engine(const Scenario& scenario, const Perturbation& perturbation, SpanSink& sink)
      : scenario_(scenario),
        perturbation_(perturbation),
        sink_(sink),
        ranks_(static_cast<std::size_t>(scenario.ranks())),
        transfers_(scenario.communicators.size()),
        activities_(ranks_.size() * kStreams + scenario.communicators.size()),
        link_shares_(scenario.link_capacities, scenario.communicators.size()) {}

  EngineResult run() {
    for (int rank = 0; rank < scenario_.ranks(); ++rank)
      for (int stream = 0; stream < kStreams; ++stream) try_start(rank, stream);
    settle();
    while (!queue_.empty()) {
      now_ = queue_.next().time;
      while (!queue_.empty() && queue_.next().time == now_) {
        const Event event = queue_.pop();
        if (event.version == activity(event.subject).version) finish(event.subject);
      }
      settle();
    }
    check_all_done();
    return {Picoseconds(last_end_), events_};
  }

 private:
  Rank& rank_at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  Activity& activity(int index) { return activities_[static_cast<std::size_t>(index)]; }
  TransferState& transfer(int index) { return transfers_[static_cast<std::size_t>(index)]; }
  const Communicator& communicator(int index) const { return scenario_.communicators[static_cast<std::size_t>(index)]; }
  const Program& program(int rank) const {
    return scenario_.programs[static_cast<std::size_t>(scenario_.program_of_rank[static_cast<std::size_t>(rank)])];
  }
  int first_transfer_activity() const { return scenario_.ranks() * kStreams; }
  int communicator_of(int rank, const Task& task) const {
    return scenario_.communicator_of_port[static_cast<std::size_t>(rank * scenario_.ports + task.port)];
  }
  /// The task at the head of a stream; null at its end.
  const Task* head(int rank, int stream) {
    const auto& list = program(rank).streams[static_cast<std::size_t>(stream)];
    const auto next = static_cast<std::size_t>(rank_at(rank).done[static_cast<std::size_t>(stream)]);
    return next < list.size() ? &list[next] : nullptr;
  }

  // ---- first phase: ends and starts

  void try_start(int rank, int stream) {
    Rank& state = rank_at(rank);
    const auto s = static_cast<std::size_t>(stream);
    if (state.state[s] != StreamState::idle) return;
    const Task* task = head(rank, stream);
    if (task == nullptr) return;
    const Wait* wait = program(rank).waits.data() + task->first_wait;
    for (int i = 0; i < task->waits; ++i)
      if (state.done[static_cast<std::size_t>(wait[i].counter)] < wait[i].count) return;
    state.arrival[s] = now_;
    if (task->kind == TaskKind::work) start_work(rank, stream, *task);
    else arrive(rank, stream, *task);
  }

  void start_work(int rank, int stream, const Task& task) {
    Rank& state = rank_at(rank);
    state.state[static_cast<std::size_t>(stream)] = StreamState::running;
    ++state.working;
    mark_rank(rank);
    double duration = static_cast<double>(task.duration.value);
    if (!perturbation_.is_none())
      duration *= perturbation_.factor(rank, stream, state.done[static_cast<std::size_t>(stream)]);
    begin(rank * kStreams + stream, duration);
  }

  void arrive(int rank, int stream, const Task& task) {
    const int index = communicator_of(rank, task);
    TransferState& state = transfer(index);
    rank_at(rank).state[static_cast<std::size_t>(stream)] = StreamState::arrived;
    state.duration = std::max(state.arrived == 0 ? 0 : state.duration, task.duration.value);
    if (++state.arrived < static_cast<std::int32_t>(communicator(index).members.size())) return;
    for (const auto& member : communicator(index).members) {
      rank_at(member.rank).state[member.stream] = StreamState::running;
      if (communicator(index).disturbs) count_moving(member.rank, 1);
    }
    link_shares_.add(index, communicator(index).links);
    starting_.push_back(index);
    begin(first_transfer_activity() + index, static_cast<double>(state.duration));
  }

  void count_moving(int rank, int change) {
    rank_at(rank).moving = static_cast<std::int16_t>(rank_at(rank).moving + change);
    mark_rank(rank);
  }

  void begin(int index, double duration) {
    Activity& a = activity(index);
    a.remaining = duration;
    a.rate = 0.0;
    a.start = a.since = now_;
    mark_activity(index);
  }

  void finish(int index) {
    ++activity(index).version;
    last_end_ = now_;
    if (index < first_transfer_activity()) finish_work(index / kStreams, index % kStreams, activity(index).start);
    else finish_transfer(index - first_transfer_activity());
  }

  void finish_work(int rank, int stream, std::int64_t start) {
    --rank_at(rank).working;
    mark_rank(rank);
    const std::uint32_t wakes = end_task(rank, stream, start);
    wake(rank, wakes | (1u << stream));
  }

  void finish_transfer(int index) {
    const Communicator& group = communicator(index);
    const std::int64_t start = activity(first_transfer_activity() + index).start;
    transfer(index) = {};
    link_shares_.remove(index);
    if (group.disturbs)
      for (const auto& member : group.members) count_moving(member.rank, -1);
    for (const auto& member : group.members) {
      const std::uint32_t wakes = end_task(member.rank, member.stream, start);
      wake(member.rank, wakes | (1u << member.stream));
    }
    if (group.deliver_rank >= 0) {
      ++rank_at(group.deliver_rank).done[static_cast<std::size_t>(kStreams + group.deliver_inbox)];
      wake(group.deliver_rank, (1u << kStreams) - 1);
    }
  }

  /// Counts the head task of a stream as complete and reports it. Returns the streams that may wait for it.
  std::uint32_t end_task(int rank, int stream, std::int64_t start) {
    const auto s = static_cast<std::size_t>(stream);
    const Task& task = *head(rank, stream);
    Rank& state = rank_at(rank);
    sink_.on_span({rank, stream, state.done[s], Picoseconds(state.arrival[s]), Picoseconds(start), Picoseconds(now_)},
                  task);
    ++state.done[s];
    state.state[s] = StreamState::idle;
    ++events_;
    return task.wakes;
  }

  void wake(int rank, std::uint32_t streams) {
    for (int stream = 0; streams != 0; ++stream, streams >>= 1)
      if (streams & 1u) try_start(rank, stream);
  }

  // ---- second phase: speeds

  void mark_rank(int rank) {
    if (rank_at(rank).dirty) return;
    rank_at(rank).dirty = true;
    dirty_ranks_.push_back(rank);
  }

  void mark_activity(int index) {
    if (activity(index).dirty) return;
    activity(index).dirty = true;
    dirty_activities_.push_back(index);
  }

  void settle() {
    for (const int rank : dirty_ranks_) settle_rank(rank);
    dirty_ranks_.clear();
    for (const int index : starting_) count_working_members(index);
    starting_.clear();
    for (const int index : link_shares_.settle()) mark_activity(first_transfer_activity() + index);
    for (const int index : dirty_activities_) {
      activity(index).dirty = false;
      set_rate(index, index < first_transfer_activity() ? work_rate(index / kStreams)
                                                        : transfer_rate(index - first_transfer_activity()));
    }
    dirty_activities_.clear();
  }

  /// Tells what runs on the rank that the other kind has started or stopped beside it.
  void settle_rank(int rank) {
    Rank& state = rank_at(rank);
    state.dirty = false;
    const bool works = state.working > 0, moves = state.moving > 0;
    if (works != state.worked || moves != state.moved) {
      for (int stream = 0; stream < kStreams; ++stream) {
        if (state.state[static_cast<std::size_t>(stream)] != StreamState::running) continue;
        const Task& task = *head(rank, stream);
        if (task.kind == TaskKind::work) {
          if (moves != state.moved) mark_activity(rank * kStreams + stream);
        } else if (works != state.worked) {
          note_member(communicator_of(rank, task), works ? 1 : -1);
        }
      }
    }
    state.worked = works;
    state.moved = moves;
  }

  void note_member(int index, int change) {
    if (!transfer(index).settled || !communicator(index).disturbs) return;
    transfer(index).working_members += change;
    mark_activity(first_transfer_activity() + index);
  }

  void count_working_members(int index) {
    TransferState& state = transfer(index);
    state.settled = true;
    if (!communicator(index).disturbs) return;
    for (const auto& member : communicator(index).members) state.working_members += rank_at(member.rank).worked ? 1 : 0;
  }

  double work_rate(int rank) { return rank_at(rank).moved ? 1.0 / scenario_.overlap.work_slowdown : 1.0; }

  double transfer_rate(int index) {
    const double slowdown = transfer(index).working_members > 0 ? scenario_.overlap.transfer_slowdown : 1.0;
    return link_shares_.share(index) / slowdown;
  }

  void set_rate(int index, double rate) {
    Activity& a = activity(index);
    if (a.rate == rate) return;
    a.remaining = std::max(0.0, a.remaining - a.rate * static_cast<double>(now_ - a.since));
    a.since = now_;
    a.rate = rate;
    const double left = a.remaining / rate;
    if (!(left < kLastInstant - static_cast<double>(now_)))
      throw std::overflow_error("the clock of picoseconds ends after 106 days");
    queue_.push(Picoseconds(now_ + std::llround(left)), index, ++a.version);
  }

  void check_all_done() {
    for (int rank = 0; rank < scenario_.ranks(); ++rank) {
      for (int stream = 0; stream < kStreams; ++stream) {
        if (head(rank, stream) == nullptr) continue;
        throw std::logic_error(fmt::format("play: rank {} waits for ever before task {} of stream {}", rank,
                                           rank_at(rank).done[static_cast<std::size_t>(stream)], stream));
      }
    }
  }

  const Scenario& scenario_;
  const Perturbation& perturbation_;
  SpanSink& sink_;
  std::vector<Rank> ranks_;
  std::vector<TransferState> transfers_;
  std::vector<Activity> activities_;  // [ranks, streams] of work, then one per communicator
  LinkShares link_shares_;
  EventQueue queue_;
  std::vector<int> dirty_ranks_, dirty_activities_, starting_;
  std::int64_t now_ = 0, last_end_ = 0, events_ = 0;
};

}  // namespace

EngineResult play(const Scenario& scenario, const Perturbation& perturbation, SpanSink& sink) {
  return Engine(scenario, perturbation, sink).run();
}

}  // namespace reckon
