#include "runtime/comm/board.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

namespace reckon {
namespace {

// The kernel's futex works across processes; the mask tells the two sleepers of a rank apart.
constexpr std::uint32_t kCaller = 1, kThread = 2;

void futex_wake(std::atomic<std::uint32_t>& word, std::uint32_t mask) {
  syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, mask);
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, double seconds, std::uint32_t mask) {
  const std::int64_t until = monotonic_nanoseconds() + static_cast<std::int64_t>(seconds * 1e9);
  timespec deadline{static_cast<time_t>(until / 1000000000), static_cast<long>(until % 1000000000)};
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, seen, &deadline, nullptr, mask);
}

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

std::size_t slot_stride(int ranks) {
  return sizeof(Slot) + round_up(static_cast<std::size_t>(ranks) * sizeof(std::int64_t)) + kInlineBytes;
}

}  // namespace

std::int64_t monotonic_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

void Doorbell::ring() {
  rings.fetch_add(1);
  if (caller_waits.load() != 0) {
    if (caller_sleeps.load() != 0) futex_wake(rings, kCaller);
  } else if (thread_calls.load() != 0 && thread_sleeps.load() != 0) {
    futex_wake(rings, kThread);
  }
}

void Doorbell::ring_thread() {
  rings.fetch_add(1);
  if (thread_sleeps.load() != 0) futex_wake(rings, kThread);
}

void Doorbell::sleep_caller(std::uint32_t seen, double seconds) {
  caller_sleeps.store(1);
  futex_wait(rings, seen, seconds, kCaller);
  caller_sleeps.store(0);
}

void Doorbell::sleep_thread(std::uint32_t seen, double seconds) {
  thread_sleeps.store(1);
  futex_wait(rings, seen, seconds, kThread);
  thread_sleeps.store(0);
}

std::size_t HostBoard::bytes(int ranks) {
  return static_cast<std::size_t>(ranks) * sizeof(Doorbell) + sizeof(Failure);
}

Doorbell& HostBoard::doorbell(int rank) {
  return reinterpret_cast<Doorbell*>(block_.get())[rank];
}

HostBoard::Failure& HostBoard::failure() const {
  return *reinterpret_cast<Failure*>(block_.get() + static_cast<std::size_t>(ranks_) * sizeof(Doorbell));
}

void HostBoard::fail(const std::string& message, ExitCode code) {
  Failure& record = failure();
  std::uint32_t none = 0;
  if (!record.state.compare_exchange_strong(none, 1)) return;
  record.code = static_cast<std::int32_t>(code);
  const std::size_t length = std::min(message.size(), sizeof(record.text) - 1);
  std::memcpy(record.text, message.data(), length);
  record.text[length] = 0;
  record.state.store(2);
  for (int rank = 0; rank < ranks_; ++rank) {
    doorbell(rank).rings.fetch_add(1);
    futex_wake(doorbell(rank).rings, kCaller | kThread);
  }
}

bool HostBoard::failed() const {
  return failure().state.load(std::memory_order_acquire) == 2;
}

void HostBoard::check() const {
  if (failed()) throw RunError(failure().text, static_cast<ExitCode>(failure().code));
}

bool HostBoard::begin_moving() {
  failure().movers.fetch_add(1);
  if (!failed()) return true;
  end_moving();
  return false;
}

void HostBoard::end_moving() {
  failure().movers.fetch_sub(1);
}

void HostBoard::settle() {
  const std::int64_t until = monotonic_nanoseconds() + 2000000000;
  while (failure().movers.load() != 0 && monotonic_nanoseconds() < until) usleep(1000);
}

std::size_t GroupBoard::bytes(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  return n * sizeof(Member) + n * n * kChannelSlots * sizeof(ChannelSlot) + n * kSlots * slot_stride(ranks);
}

Member& GroupBoard::member(int rank) {
  return reinterpret_cast<Member*>(block_.get())[rank];
}

ChannelSlot& GroupBoard::channel(int from, int to, std::int64_t message) {
  const auto n = static_cast<std::size_t>(ranks_);
  auto* channels = reinterpret_cast<ChannelSlot*>(block_.get() + n * sizeof(Member));
  return channels[(from * ranks_ + to) * kChannelSlots + message % kChannelSlots];
}

std::byte* GroupBoard::slot_address(int rank, std::int64_t call) {
  const auto n = static_cast<std::size_t>(ranks_);
  std::byte* slots = block_.get() + n * sizeof(Member) + n * n * kChannelSlots * sizeof(ChannelSlot);
  return slots + static_cast<std::size_t>(rank * kSlots + call % kSlots) * slot_stride(ranks_);
}

Slot& GroupBoard::slot(int rank, std::int64_t call) {
  return *reinterpret_cast<Slot*>(slot_address(rank, call));
}

std::int64_t* GroupBoard::counts(int rank, std::int64_t call) {
  return reinterpret_cast<std::int64_t*>(slot_address(rank, call) + sizeof(Slot));
}

std::byte* GroupBoard::payload(int rank, std::int64_t call) {
  return slot_address(rank, call) + slot_stride(ranks_) - kInlineBytes;
}

}  // namespace reckon
