// One collective on the shared board, as a sequence of stages that never block:
//   announce  publish the call in a slot; up to 32 KiB of payload travel in the slot itself
//   meet      all peers have announced the same call: compare it, then do this rank's share of the work
//   gather    large all_reduce only: collect the parts that the peers have summed
//   drain     large calls only: the peers have read what they need from this rank's buffer
// An all_reduce above 32 KiB is a reduce_scatter followed by an all_gather of the same parts; below it every rank sums
// everything itself. Both add in rank order, so they agree bit for bit.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/comm/shared_communicator.h"

namespace reckon {
namespace {

constexpr std::int64_t kScratchBytes = 524'288;  // peers' data under reduction: stays in the second-level cache
constexpr std::int64_t kPieceBytes = 65'536;

class CollectiveCall final : public ActiveCall {
 public:
  CollectiveCall(std::shared_ptr<SharedGroup> group, Operation operation, std::int64_t call)
      : ActiveCall(group->host->progress),
        group_(std::move(group)),
        operation_(std::move(operation)),
        call_(call),
        size_(group_->size()),
        on_device_(group_->host->memory->on_device(operation_.send.address) ||
                   group_->host->memory->on_device(operation_.receive.address)),
        inside_(operation_.send.bytes() <= kInlineBytes && !on_device_),
        gathered_(static_cast<std::size_t>(size_)),
        drains_(static_cast<std::size_t>(size_)) {}

  bool announce() override;
  bool advance() override;
  bool needs_thread() const override { return !inside_ || has_counts(operation_); }
  std::string broken() override;
  std::string overdue(double seconds) override;

 private:
  enum class Stage { announce, meet, gather, drain };

  Slot& slot(int member) { return group_->board.slot(member, call_); }
  Slot& own() { return slot(group_->rank); }
  bool slot_is_free();
  bool meet();
  void compare(int member);
  std::string heading() const;

  void work();
  void finish();
  Segment source_part(int member);
  const void* look(int member, Segment part, void* scratch);
  void copy(int member, Segment part, std::int64_t to);
  void reduce(Segment part, void* result);
  bool gather();
  bool drained();
  void* receive_at(std::int64_t element) {
    return static_cast<std::byte*>(operation_.receive.address) + element * width();
  }
  std::int64_t width() const { return bytes_of(described_type(operation_)); }

  std::shared_ptr<SharedGroup> group_;
  Operation operation_;
  std::int64_t call_;
  int size_;
  bool on_device_;  // buffers stay where they are: no payload in the slot, no pieces
  bool inside_;
  Stage stage_ = Stage::announce;
  int met_members_ = 0, drained_members_ = 0, gathered_members_ = 0;
  std::vector<bool> gathered_;
  std::vector<bool> drains_;  // members whose buffers are read by others and who wait for that
};

// --- announce
// ---------------------------------------------------------------------------------------------------------

bool CollectiveCall::slot_is_free() {
  for (int member = 0; member < size_; ++member)
    if (slot(member).finished.load(std::memory_order_acquire) < call_ - kSlots) return false;
  return true;
}

bool CollectiveCall::announce() {
  if (stage_ != Stage::announce) return true;
  Member& me = group_->board.member(group_->rank);
  if (!slot_is_free()) {
    me.needs_slot.store(1);
    if (!slot_is_free()) return false;
  }
  Slot& mine = own();
  mine.call = announcement_of(operation_, issued(), inside_);
  std::ranges::copy(announced_counts(operation_), group_->board.counts(group_->rank, call_));
  const bool puts_in = operation_.kind != OperationKind::broadcast || operation_.peer == group_->rank;
  if (inside_ && puts_in && operation_.send.bytes() > 0)
    std::memcpy(group_->board.payload(group_->rank, call_), operation_.send.address,
                static_cast<std::size_t>(operation_.send.bytes()));
  mine.announced.store(call_);
  if (me.calls.load() < call_) me.calls.store(call_);
  group_->ring_peers();
  stage_ = Stage::meet;
  return true;
}

// --- meet
// -------------------------------------------------------------------------------------------------------------

bool CollectiveCall::meet() {
  while (met_members_ < size_) {
    Slot& next = slot(met_members_);
    if (next.announced.load(std::memory_order_acquire) < call_) return false;
    met_at(next.call.issued);
    drains_[static_cast<std::size_t>(met_members_)] = !next.call.payload_inside;
    ++met_members_;
  }
  return true;
}

std::string CollectiveCall::heading() const {
  return fmt::format("call {} of group {}", call_, group_->name);
}

void CollectiveCall::compare(int member) {
  const Announcement& other = slot(member).call;
  const auto detail = difference(operation_, group_->rank, other, group_->board.counts(member, call_), member);
  if (!detail) return;
  throw RunError(
      mismatch_text(heading(), operation_, group_->own_world_rank(), other, group_->world_rank(member), *detail));
}

// --- this rank's share of the work
// --------------------------------------------------------------------------------------

/// Where in `member`'s send buffer the data for this rank lies.
Segment CollectiveCall::source_part(int member) {
  return part_between(operation_, group_->board.counts(member, call_), member, group_->rank, size_);
}

const void* CollectiveCall::look(int member, Segment part, void* scratch) {
  const Announcement& call = slot(member).call;
  if (call.payload_inside) return group_->board.payload(member, call_) + part.offset * width();
  const std::uint64_t address = call.source + static_cast<std::uint64_t>(part.offset * width());
  if (member == group_->rank) return reinterpret_cast<const void*>(address);
  return group_->host->memory->look(group_->host_rank(member), address, part.count * width(), scratch);
}

void CollectiveCall::copy(int member, Segment part, std::int64_t to) {
  if (part.count == 0) return;
  void* target = receive_at(to);
  const void* source = look(member, part, target);
  if (source != target) group_->host->memory->copy(target, source, part.count * width());
}

void CollectiveCall::reduce(Segment part, void* result) {
  if (part.count == 0) return;
  const std::int64_t piece = on_device_ ? part.count : std::min(kPieceBytes, kScratchBytes / size_) / width();
  std::vector<std::byte>& scratch = group_->host->scratch;
  if (!on_device_) scratch.resize(static_cast<std::size_t>(size_ * piece * width()));
  std::vector<const void*> sources(static_cast<std::size_t>(size_));
  for (std::int64_t done = 0; done < part.count; done += piece) {
    const Segment now{part.offset + done, std::min(piece, part.count - done)};
    for (int member = 0; member < size_; ++member)
      sources[static_cast<std::size_t>(member)] =
          look(member, now, on_device_ ? nullptr : scratch.data() + member * piece * width());
    group_->host->memory->reduce(sources, operation_.send.type, operation_.reduction, now.count,
                                 static_cast<std::byte*>(result) + done * width());
  }
}

void CollectiveCall::work() {
  const Segment whole{0, described_count(operation_)};
  switch (operation_.kind) {
    case OperationKind::all_reduce: {
      if (inside_) return reduce(whole, operation_.receive.address);
      const Segment part = even_segment(operation_.send.count, size_, group_->rank);
      return reduce(part, receive_at(part.offset));
    }
    case OperationKind::reduce_scatter: return reduce(source_part(group_->rank), operation_.receive.address);
    case OperationKind::broadcast:
      if (operation_.peer != group_->rank) copy(operation_.peer, whole, 0);
      return;
    case OperationKind::all_gather:
    case OperationKind::all_to_all:
      for (int step = 0; step < size_; ++step) {  // each rank starts with itself, so that not all read from one
        const int member = (group_->rank + step) % size_;
        copy(member, source_part(member), place_of(operation_, member, size_).offset);
      }
      return;
    default: return;
  }
}

void CollectiveCall::finish() {  // from here on a peer may use its slot for another call
  own().finished.store(call_);
  for (int member = 0; member < size_; ++member) {
    if (member == group_->rank) continue;
    const bool waits_for_slot = group_->board.member(member).needs_slot.exchange(0) != 0;
    if (waits_for_slot || drains_[static_cast<std::size_t>(member)]) group_->ring(member);
  }
}

bool CollectiveCall::gather() {
  for (int member = 0; member < size_; ++member) {
    const auto index = static_cast<std::size_t>(member);
    if (gathered_[index] || slot(member).reduced.load(std::memory_order_acquire) < call_) continue;
    if (member != group_->rank) {
      const Segment part = even_segment(operation_.send.count, size_, member);
      void* target = receive_at(part.offset);
      const std::uint64_t address = slot(member).call.result + static_cast<std::uint64_t>(part.offset * width());
      const void* source = group_->host->memory->look(group_->host_rank(member), address, part.count * width(), target);
      if (source != target) group_->host->memory->copy(target, source, part.count * width());
    }
    gathered_[index] = true;
    ++gathered_members_;
  }
  return gathered_members_ == size_;
}

bool CollectiveCall::drained() {
  while (drained_members_ < size_) {
    if (slot(drained_members_).finished.load(std::memory_order_acquire) < call_) return false;
    ++drained_members_;
  }
  return true;
}

bool CollectiveCall::advance() {
  if (stage_ == Stage::meet) {
    if (!meet()) return false;
    for (int member = 0; member < size_; ++member) compare(member);
    work();
    if (operation_.kind == OperationKind::all_reduce && !inside_) {
      own().reduced.store(call_);
      group_->ring_peers();
      stage_ = Stage::gather;
    } else {
      finish();
      stage_ = Stage::drain;
    }
  }
  if (stage_ == Stage::gather) {
    if (!gather()) return false;
    finish();
    stage_ = Stage::drain;
  }
  return inside_ || drained();
}

// --- failures
// ---------------------------------------------------------------------------------------------------------

std::string CollectiveCall::broken() {
  for (int member = 0; member < size_; ++member) {
    // Read before the stages: a peer finishes its part first and leaves or ends afterwards.
    const bool left = group_->board.member(member).left.load() != 0;
    const bool alive = group_->host->memory->alive(group_->host_rank(member));
    if (slot(member).finished.load() >= call_) continue;
    if (left && slot(member).announced.load() < call_)
      return fmt::format("{}: rank {} left the group before making this call, rank {} called {}", heading(),
                         group_->world_rank(member), group_->own_world_rank(), describe(operation_));
    if (!alive)
      return fmt::format("{}: rank {} has died; rank {} waits for it in {}", heading(), group_->world_rank(member),
                         group_->own_world_rank(), describe(operation_));
  }
  return {};
}

std::string CollectiveCall::overdue(double seconds) {
  std::string missing, stuck;
  for (int member = 0; member < size_; ++member) {
    if (slot(member).announced.load() < call_)
      missing += fmt::format("; rank {} has not made this call (it has made {})", group_->world_rank(member),
                             group_->board.member(member).calls.load());
    else if (slot(member).finished.load() < call_ && member != group_->rank)
      stuck += fmt::format("; rank {} made this call but stopped in it", group_->world_rank(member));
  }
  return fmt::format("{}: no answer within {:g} s to rank {}'s {}{}", heading(), seconds, group_->own_world_rank(),
                     describe(operation_), missing.empty() ? stuck : missing);
}

}  // namespace

std::shared_ptr<ActiveCall> make_collective_call(std::shared_ptr<SharedGroup> group, Operation operation,
                                                 std::int64_t call) {
  return std::make_shared<CollectiveCall>(std::move(group), std::move(operation), call);
}

}  // namespace reckon
