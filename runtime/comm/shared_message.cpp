// A message between two ranks on the shared board: the sender announces its buffer, the receiver reads it.
#include <fmt/format.h>

#include "runtime/comm/shared_communicator.h"

namespace reckon {
namespace {

class MessageCall final : public ActiveCall {
 public:
  MessageCall(std::shared_ptr<SharedGroup> group, Operation operation, std::int64_t message)
      : ActiveCall(group->host->progress),
        group_(std::move(group)),
        operation_(std::move(operation)),
        message_(message),
        sends_(operation_.kind == OperationKind::send),
        channel_(sends_ ? group_->board.channel(group_->rank, operation_.peer, message)
                        : group_->board.channel(operation_.peer, group_->rank, message)) {}

  bool announce() override;
  bool advance() override;
  bool needs_thread() const override { return !sends_; }
  std::string broken() override;
  std::string overdue(double seconds) override;

 private:
  bool slot_is_free() { return channel_.finished.load(std::memory_order_acquire) >= message_ - kChannelSlots; }
  void receive();
  std::string heading() const {
    return fmt::format("message {} from rank {} to rank {} in group {}", message_,
                       group_->world_rank(sends_ ? group_->rank : operation_.peer),
                       group_->world_rank(sends_ ? operation_.peer : group_->rank), group_->name);
  }

  std::shared_ptr<SharedGroup> group_;
  Operation operation_;
  std::int64_t message_;
  bool sends_;
  ChannelSlot& channel_;
  bool announced_ = false;
};

bool MessageCall::announce() {
  if (!sends_ || announced_) return true;
  Member& me = group_->board.member(group_->rank);
  if (!slot_is_free()) {
    me.needs_slot.store(1);
    if (!slot_is_free()) return false;
  }
  channel_.call = announcement_of(operation_, issued(), false);
  channel_.announced.store(message_);
  group_->ring(operation_.peer);
  announced_ = true;
  return true;
}

void MessageCall::receive() {
  const Announcement& sent = channel_.call;
  const BufferView& buffer = operation_.receive;
  if (sent.count != buffer.count || sent.type != buffer.type)
    throw RunError(fmt::format("{} differs: sent are {} {} elements, rank {} expects {} {} elements", heading(),
                               sent.count, name_of(sent.type), group_->own_world_rank(), buffer.count,
                               name_of(buffer.type)));
  met_at(sent.issued);
  if (buffer.bytes() > 0) {
    const void* source =
        group_->host->memory->look(group_->host_rank(operation_.peer), sent.source, buffer.bytes(), buffer.address);
    if (source != buffer.address) group_->host->memory->copy(buffer.address, source, buffer.bytes());
  }
  channel_.awaited.store(issued());
  channel_.finished.store(message_);
  group_->ring(operation_.peer);
}

bool MessageCall::advance() {
  if (sends_) {
    if (channel_.finished.load(std::memory_order_acquire) < message_) return false;
    met_at(channel_.awaited.load());
    return true;
  }
  if (channel_.announced.load(std::memory_order_acquire) < message_) return false;
  receive();
  return true;
}

std::string MessageCall::broken() {
  // Read before the stages: a peer does its side first and leaves or ends afterwards.
  const bool left = group_->board.member(operation_.peer).left.load() != 0;
  const bool alive = group_->host->memory->alive(group_->host_rank(operation_.peer));
  if (channel_.finished.load() >= message_) return {};
  const bool waits = sends_ || channel_.announced.load() < message_;
  if (alive && !(left && waits)) return {};
  const char* reason = alive ? "left the group before making its side" : "has died";
  return fmt::format("{}: rank {} {}; rank {} waits in {}", heading(), group_->world_rank(operation_.peer), reason,
                     group_->own_world_rank(), describe(operation_));
}

std::string MessageCall::overdue(double seconds) {
  return fmt::format("{}: no answer within {:g} s to rank {}'s {}; rank {} has not made its side", heading(), seconds,
                     group_->own_world_rank(), describe(operation_), group_->world_rank(operation_.peer));
}

}  // namespace

std::shared_ptr<ActiveCall> make_message_call(std::shared_ptr<SharedGroup> group, Operation operation,
                                              std::int64_t message) {
  return std::make_shared<MessageCall>(std::move(group), std::move(operation), message);
}

}  // namespace reckon
