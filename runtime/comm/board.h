// The shared blocks through which the ranks of one host meet.
//
// HostBoard, one per run: a doorbell per rank (rung when something that it may wait for has happened) and the first
// failure, which every rank reports. GroupBoard, one per group: each rank announces its calls in a ring of slots, and
// its messages in a ring of channel slots per receiver. A slot is written by its owner only; small payloads travel in
// the slot itself, large ones are read from the owner's memory at the announced address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "plan/errors.h"
#include "runtime/comm/match.h"

namespace reckon {

/// Wakes a rank that sleeps. A rank has up to two sleepers: its caller in wait(), which comes first, and its progress
/// thread, which is woken while the caller computes.
struct alignas(64) Doorbell {
  std::atomic<std::uint32_t> rings;
  std::atomic<std::uint32_t> caller_waits;  // the caller is in wait(), awake or asleep
  std::atomic<std::uint32_t> caller_sleeps;
  std::atomic<std::uint32_t> thread_sleeps;
  std::atomic<std::uint32_t> thread_calls;  // calls in flight that peers may depend on: worth waking the thread

  void ring();
  void ring_thread();  // hand over to the progress thread
  /// Sleeps until a ring after `seen` was read, or for `seconds` at most.
  void sleep_caller(std::uint32_t seen, double seconds);
  void sleep_thread(std::uint32_t seen, double seconds);
};

class HostBoard {
 public:
  static std::size_t bytes(int ranks);
  HostBoard(std::shared_ptr<std::byte> block, int ranks) : block_(std::move(block)), ranks_(ranks) {}

  int ranks() const { return ranks_; }
  Doorbell& doorbell(int rank);
  /// Records the first failure and wakes everybody; later ones are dropped.
  void fail(const std::string& message, ExitCode code);
  bool failed() const;
  /// Throws the recorded failure as RunError, if there is one.
  void check() const;

  /// Data is moved between begin and end only; begin says no after a failure.
  bool begin_moving();
  void end_moving();
  /// After a failure: waits until nobody moves data any more (2 s at most), so that buffers can be freed.
  void settle();

 private:
  struct Failure {
    std::atomic<std::uint32_t> state;  // 0 none, 1 being written, 2 readable
    std::atomic<std::uint32_t> movers;
    std::int32_t code;
    char text[2036];
  };
  Failure& failure() const;

  std::shared_ptr<std::byte> block_;
  int ranks_;
};

constexpr std::int64_t kSlots = 8;                // calls of one rank in flight
constexpr std::int64_t kChannelSlots = 4;         // messages of one sender to one receiver in flight
constexpr std::int64_t kInlineBytes = 32 * 1024;  // payload that travels in the slot

/// `call` numbers start at 1; a stage holds the number of the last call that reached it.
struct alignas(64) Slot {
  std::atomic<std::int64_t> announced;
  std::atomic<std::int64_t> reduced;   // own part of an all_reduce is in place
  std::atomic<std::int64_t> finished;  // nothing of the peers is needed any more
  Announcement call;
};

struct alignas(64) ChannelSlot {
  std::atomic<std::int64_t> announced;  // written by the sender
  std::atomic<std::int64_t> finished;   // written by the receiver
  std::atomic<std::int64_t> awaited;    // when the receiver made its call, nanoseconds
  Announcement call;
};

struct alignas(64) Member {
  std::atomic<std::int64_t> calls;        // announced so far
  std::atomic<std::uint32_t> left;        // has destroyed its communicator
  std::atomic<std::uint32_t> needs_slot;  // has a call that waits for a slot to become free
};

class GroupBoard {
 public:
  static std::size_t bytes(int ranks);
  GroupBoard(std::shared_ptr<std::byte> block, int ranks) : block_(std::move(block)), ranks_(ranks) {}

  Member& member(int rank);
  Slot& slot(int rank, std::int64_t call);
  /// Part sizes of the call in that slot, `ranks` of them.
  std::int64_t* counts(int rank, std::int64_t call);
  std::byte* payload(int rank, std::int64_t call);
  ChannelSlot& channel(int from, int to, std::int64_t message);

 private:
  std::byte* slot_address(int rank, std::int64_t call);

  std::shared_ptr<std::byte> block_;
  int ranks_;
};

std::int64_t monotonic_nanoseconds();

}  // namespace reckon
