// One call of a group that talks by MPI messages, as stages that never block:
//   header   everybody tells everybody what it called (the contract check); a message carries its header ahead
//   data     parts go to those who need them
//   gather   all_reduce above 32 KiB only: the summed parts go to everybody
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "plan/errors.h"
#include "runtime/comm/mpi_messages.h"
#include "runtime/comm/reduce.h"

namespace reckon {
namespace {

constexpr std::int64_t kLargestMessage = std::int64_t{1} << 30;  // bytes; MPI counts are 32-bit
constexpr std::int64_t kWholeReduction = 32'768;                 // up to here every rank sums everything

// Tags keep the stages of calls in flight apart; calls this far apart are never in flight together.
constexpr std::int64_t kTagCycle = 1 << 16;
enum class TagKind { header, data, gather, message_header, message_data };

int tag_of(TagKind kind, std::int64_t call) {
  return static_cast<int>((call % kTagCycle) * 8 + static_cast<std::int64_t>(kind));
}

/// An announcement on the wire, followed by the table of counts.
using Header = std::vector<std::int64_t>;
constexpr std::size_t kHeaderWords = 6;

Header header_of(const Operation& operation, int size) {
  const Announcement call = announcement_of(operation, 0, false);
  Header words{static_cast<std::int64_t>(call.kind),
               static_cast<std::int64_t>(call.reduction),
               static_cast<std::int64_t>(call.type),
               call.peer,
               call.count,
               call.has_counts};
  const auto& counts = announced_counts(operation);
  words.insert(words.end(), counts.begin(), counts.end());
  words.resize(kHeaderWords + static_cast<std::size_t>(size));
  return words;
}

Announcement announcement_in(const Header& words) {
  return {static_cast<OperationKind>(words[0]),
          static_cast<Reduction>(words[1]),
          static_cast<ElementType>(words[2]),
          static_cast<std::int32_t>(words[3]),
          words[4],
          0,
          0,
          0,
          false,
          words[5] != 0};
}

/// MPI requests of one stage.
class Transfers {
 public:
  Transfers(MPI_Comm comm) : comm_(comm) {}

  void send(const void* address, std::int64_t bytes, int to, int tag) {
    for (std::int64_t done = 0; done < bytes; done += kLargestMessage)
      check_mpi(MPI_Isend(static_cast<const std::byte*>(address) + done, piece(bytes - done), MPI_BYTE, to, tag, comm_,
                          &next()),
                "MPI_Isend");
  }
  void receive(void* address, std::int64_t bytes, int from, int tag) {
    for (std::int64_t done = 0; done < bytes; done += kLargestMessage)
      check_mpi(
          MPI_Irecv(static_cast<std::byte*>(address) + done, piece(bytes - done), MPI_BYTE, from, tag, comm_, &next()),
          "MPI_Irecv");
  }
  bool complete() {
    int flag = 0;
    check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &flag, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    if (flag != 0) requests_.clear();
    return flag != 0;
  }

 private:
  static int piece(std::int64_t rest) { return static_cast<int>(std::min(rest, kLargestMessage)); }
  MPI_Request& next() { return requests_.emplace_back(MPI_REQUEST_NULL); }

  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
};

class MpiCollectiveCall final : public ActiveCall {
 public:
  MpiCollectiveCall(std::shared_ptr<MessageGroup> group, Operation operation, std::int64_t call)
      : ActiveCall(group->host->progress),
        group_(std::move(group)),
        operation_(std::move(operation)),
        call_(call),
        size_(group_->size()),
        transfers_(group_->comm),
        header_(header_of(operation_, size_)),
        headers_(static_cast<std::size_t>(size_), header_) {}

  bool announce() override;
  bool advance() override;
  bool needs_thread() const override { return true; }
  std::string broken() override { return {}; }
  std::string overdue(double seconds) override;

 private:
  enum class Stage { announce, header, data, gather };

  std::int64_t width() const { return bytes_of(described_type(operation_)); }
  std::byte* receive_at(std::int64_t element) {
    return static_cast<std::byte*>(operation_.receive.address) + element * width();
  }
  const std::byte* send_at(std::int64_t element) const {
    return static_cast<const std::byte*>(operation_.send.address) + element * width();
  }
  const std::int64_t* counts_of(int member) const {
    return headers_[static_cast<std::size_t>(member)].data() + kHeaderWords;
  }
  std::string heading() const { return fmt::format("call {} of group {}", call_, group_->name); }
  bool scatters() const {
    return operation_.kind == OperationKind::all_reduce && operation_.send.bytes() > kWholeReduction;
  }
  bool reduces() const {
    return operation_.kind == OperationKind::all_reduce || operation_.kind == OperationKind::reduce_scatter;
  }

  void compare(int member);
  Segment part(int from, int to) const;
  void start_data();
  void finish_data();
  void start_gather();
  template <class Action>
  void for_peers(Action action) {
    for (int step = 1; step < size_; ++step) action((group_->rank + step) % size_);
  }

  std::shared_ptr<MessageGroup> group_;
  Operation operation_;
  std::int64_t call_;
  int size_;
  Stage stage_ = Stage::announce;
  Transfers transfers_;
  Header header_;
  std::vector<Header> headers_;     // by member
  std::vector<std::byte> scratch_;  // parts of all members that are to be reduced
};

bool MpiCollectiveCall::announce() {
  if (stage_ != Stage::announce) return true;
  const auto bytes = static_cast<std::int64_t>(header_.size() * sizeof(header_[0]));
  for_peers([&](int peer) {
    headers_[static_cast<std::size_t>(peer)][0] = -1;  // not here yet
    transfers_.receive(headers_[static_cast<std::size_t>(peer)].data(), bytes, peer, tag_of(TagKind::header, call_));
    transfers_.send(header_.data(), bytes, peer, tag_of(TagKind::header, call_));
  });
  stage_ = Stage::header;
  return true;
}

void MpiCollectiveCall::compare(int member) {
  const Announcement other = announcement_in(headers_[static_cast<std::size_t>(member)]);
  const auto detail = difference(operation_, group_->rank, other, counts_of(member), member);
  if (detail)
    throw RunError(mismatch_text(heading(), operation_, group_->world_rank(group_->rank), other,
                                 group_->world_rank(member), *detail));
}

/// What `from` sends to `to`, in `from`'s send buffer.
Segment MpiCollectiveCall::part(int from, int to) const {
  if (operation_.kind == OperationKind::broadcast && from != operation_.peer) return {0, 0};
  if (operation_.kind == OperationKind::barrier) return {0, 0};
  if (scatters()) return even_segment(operation_.send.count, size_, to);
  return part_between(operation_, counts_of(from), from, to, size_);
}

void MpiCollectiveCall::start_data() {
  const std::int64_t own_bytes = reduces() ? part(0, group_->rank).count * width() : 0;
  scratch_.resize(static_cast<std::size_t>(own_bytes * size_));
  const int tag = tag_of(TagKind::data, call_);
  for_peers([&](int peer) {
    void* target =
        reduces()
            ? static_cast<void*>(scratch_.data() + own_bytes * peer)
            : receive_at(operation_.kind == OperationKind::broadcast ? 0 : place_of(operation_, peer, size_).offset);
    transfers_.receive(target, part(peer, group_->rank).count * width(), peer, tag);
    const Segment out = part(group_->rank, peer);
    transfers_.send(send_at(out.offset), out.count * width(), peer, tag);
  });
}

void MpiCollectiveCall::finish_data() {
  const Segment own = part(group_->rank, group_->rank);
  if (reduces()) {
    std::vector<const void*> sources;
    for (int member = 0; member < size_; ++member)
      sources.push_back(member == group_->rank ? static_cast<const void*>(send_at(own.offset))
                                               : scratch_.data() + own.count * width() * member);
    void* result = scatters() ? receive_at(own.offset) : operation_.receive.address;
    reduce_in_rank_order(sources, operation_.send.type, operation_.reduction, own.count, result);
    scratch_ = {};
  } else if (operation_.kind == OperationKind::all_gather || operation_.kind == OperationKind::all_to_all) {
    std::byte* target = receive_at(place_of(operation_, group_->rank, size_).offset);
    if (own.count > 0 && target != send_at(own.offset))
      std::memcpy(target, send_at(own.offset), static_cast<std::size_t>(own.count * width()));
  }
}

void MpiCollectiveCall::start_gather() {
  const int tag = tag_of(TagKind::gather, call_);
  const Segment own = even_segment(operation_.send.count, size_, group_->rank);
  for_peers([&](int peer) {
    const Segment theirs = even_segment(operation_.send.count, size_, peer);
    transfers_.receive(receive_at(theirs.offset), theirs.count * width(), peer, tag);
    transfers_.send(receive_at(own.offset), own.count * width(), peer, tag);
  });
}

bool MpiCollectiveCall::advance() {
  if (!transfers_.complete()) return false;
  if (stage_ == Stage::header) {
    met_at(monotonic_nanoseconds());
    for (int member = 0; member < size_; ++member) compare(member);
    start_data();
    stage_ = Stage::data;
    if (!transfers_.complete()) return false;
  }
  if (stage_ == Stage::data) {
    finish_data();
    if (!scatters()) return true;
    start_gather();
    stage_ = Stage::gather;
  }
  return transfers_.complete();
}

std::string MpiCollectiveCall::overdue(double seconds) {
  std::string text = fmt::format("{}: no answer within {:g} s to rank {}'s {}", heading(), seconds,
                                 group_->world_rank(group_->rank), describe(operation_));
  if (stage_ != Stage::header) return text + "; a rank made this call but stopped in it";
  for (int member = 0; member < size_; ++member)
    if (headers_[static_cast<std::size_t>(member)][0] < 0)
      text += fmt::format("; rank {} has not made this call", group_->world_rank(member));
  return text;
}

/// A message: its header travels ahead, so that a wrong size is told instead of truncated.
class MpiMessageCall final : public ActiveCall {
 public:
  MpiMessageCall(std::shared_ptr<MessageGroup> group, Operation operation, std::int64_t message)
      : ActiveCall(group->host->progress),
        group_(std::move(group)),
        operation_(std::move(operation)),
        message_(message),
        sends_(operation_.kind == OperationKind::send),
        transfers_(group_->comm),
        header_{described_count(operation_), static_cast<std::int64_t>(described_type(operation_))} {}

  bool announce() override;
  bool advance() override;
  bool needs_thread() const override { return true; }
  std::string broken() override { return {}; }
  std::string overdue(double seconds) override {
    return fmt::format("{}: no answer within {:g} s to rank {}'s {}; rank {} has not made its side", heading(), seconds,
                       group_->world_rank(group_->rank), describe(operation_), group_->world_rank(operation_.peer));
  }

 private:
  std::string heading() const {
    const int own = group_->world_rank(group_->rank), peer = group_->world_rank(operation_.peer);
    return fmt::format("message {} from rank {} to rank {} in group {}", message_, sends_ ? own : peer,
                       sends_ ? peer : own, group_->name);
  }

  std::shared_ptr<MessageGroup> group_;
  Operation operation_;
  std::int64_t message_;
  bool sends_;
  bool announced_ = false, header_done_ = false;
  Transfers transfers_;
  std::array<std::int64_t, 2> header_, received_{};
};

bool MpiMessageCall::announce() {
  if (announced_) return true;
  announced_ = true;
  const int header_tag = tag_of(TagKind::message_header, message_), data_tag = tag_of(TagKind::message_data, message_);
  if (sends_) {
    transfers_.send(header_.data(), sizeof(header_), operation_.peer, header_tag);
    transfers_.send(operation_.send.address, operation_.send.bytes(), operation_.peer, data_tag);
    header_done_ = true;
  } else {
    transfers_.receive(received_.data(), sizeof(received_), operation_.peer, header_tag);
  }
  return true;
}

bool MpiMessageCall::advance() {
  if (!transfers_.complete()) return false;
  if (header_done_) return true;
  header_done_ = true;
  met_at(monotonic_nanoseconds());
  if (received_ != header_)
    throw RunError(fmt::format("{} differs: sent are {} {} elements, rank {} expects {} {} elements", heading(),
                               received_[0], name_of(static_cast<ElementType>(received_[1])),
                               group_->world_rank(group_->rank), header_[0],
                               name_of(static_cast<ElementType>(header_[1]))));
  transfers_.receive(operation_.receive.address, operation_.receive.bytes(), operation_.peer,
                     tag_of(TagKind::message_data, message_));
  return transfers_.complete();
}

}  // namespace

std::shared_ptr<ActiveCall> make_mpi_collective_call(std::shared_ptr<MessageGroup> group, Operation operation,
                                                     std::int64_t call) {
  return std::make_shared<MpiCollectiveCall>(std::move(group), std::move(operation), call);
}

std::shared_ptr<ActiveCall> make_mpi_message_call(std::shared_ptr<MessageGroup> group, Operation operation,
                                                  std::int64_t message) {
  return std::make_shared<MpiMessageCall>(std::move(group), std::move(operation), message);
}

}  // namespace reckon
