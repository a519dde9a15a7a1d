// What an engine run plays. A rank has streams; each runs its own list of tasks in order, one at a time. A task may
// also wait until other streams of its rank have finished so many tasks, or until so many messages have come in. Ranks
// that do the same share one program, so that the memory of a run does not grow with the product of ranks and tasks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/picoseconds.h"

namespace reckon {

/// Streams and inboxes of a rank; a Wait names either: streams are 0 .. kStreams-1, inboxes follow.
inline constexpr int kStreams = 8;
inline constexpr int kInboxes = 4;
inline constexpr int kCounters = kStreams + kInboxes;

/// "Not before `count` tasks of that stream (messages of that inbox) are complete." Refers to the same rank.
struct Wait {
  int counter = 0;
  std::int32_t count = 0;
};

enum class TaskKind : std::uint8_t {
  work,      // keeps its stream busy for `duration`
  transfer,  // starts when all members of the communicator in `port` have arrived; ends for all of them together
};

struct Task {
  Picoseconds duration;    // alone: nothing overlaps, no link is shared
  std::int32_t label = 0;  // what it is, for whoever reads the spans
  std::uint32_t first_wait = 0;
  std::uint16_t waits = 0;
  std::uint16_t wakes = 0;  // bit s: a task of stream s waits for this one; set by Program::add
  TaskKind kind = TaskKind::work;
  std::uint8_t port = 0;  // transfer: which of the rank's communicators
};

struct Program {
  std::array<std::vector<Task>, kStreams> streams;
  std::vector<Wait> waits;

  /// Appends a task to `stream` and returns the wait that means "this task is complete".
  Wait add(int stream, Task task, const std::vector<Wait>& waits_for);
  std::int64_t tasks() const;
};

/// Ranks that move data together. `port` of a rank leads to one of these.
struct Communicator {
  struct Member {
    std::int32_t rank = 0;
    std::uint8_t stream = 0;
  };
  std::vector<Member> members;
  std::vector<std::int32_t> links;  // crossed while data moves
  std::int32_t deliver_rank = -1;   // receives a message in its inbox `deliver_inbox` at the end; -1 = nobody
  std::int32_t deliver_inbox = 0;
  bool disturbs = true;  // it slows the work of its members and is slowed by it
};

/// Factors on durations while work and a disturbing transfer run on one rank at the same time.
struct Overlap {
  double work_slowdown = 1.0;
  double transfer_slowdown = 1.0;
};

struct Scenario {
  std::vector<Program> programs;
  std::vector<std::int32_t> program_of_rank;
  std::vector<Communicator> communicators;
  int ports = 0;                                   // per rank
  std::vector<std::int32_t> communicator_of_port;  // [ranks, ports]; -1 = none
  std::vector<double> link_capacities;             // in flows that move at full speed
  Overlap overlap;

  int ranks() const { return static_cast<int>(program_of_rank.size()); }
};

}  // namespace reckon
