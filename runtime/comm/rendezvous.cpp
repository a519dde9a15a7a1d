#include "runtime/comm/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>

#include "runtime/comm/rendezvous_frames.h"
#include "runtime/comm/wire.h"

namespace reckon {
namespace {

constexpr int kLookMilliseconds = 20;             // announcements wait no longer than this
constexpr std::chrono::seconds kServerAnswer{3};  // rank 0 answers at once, or not at all

std::chrono::duration<double> duration_of(Seconds time) {
  return std::chrono::duration<double>(time.value);
}

std::int64_t nanoseconds(Seconds time) {
  return static_cast<std::int64_t>(time.value * 1e9);
}

FrameSocket connect_rank(const std::string& address, int port, int rank, Seconds timeout) {
  try {
    return connect_to(address, port,
                      Deadline::clock::now() + std::chrono::duration_cast<Deadline::duration>(duration_of(timeout)));
  } catch (const RunError& error) {
    throw RunError(
        fmt::format("rank {} cannot reach rank 0 at {}:{} within {:g} s: {}; is rank 0 started there, and is "
                    "the port open between the hosts?",
                    rank, address, port, timeout.value, error.what()),
        error.exit_code());
  }
}

}  // namespace

Rendezvous::Rendezvous(const std::string& address, int port, int rank, int ranks, Seconds timeout)
    : socket_(connect_rank(address, port, rank, timeout)),
      timeout_(timeout),
      rank_(rank),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  queue(static_cast<int>(FrameKind::hello), WireWriter().number(rank).number(ranks).text(kProtocol).take(), true);
  thread_ = std::thread(&Rendezvous::run, this);
}

Rendezvous::~Rendezvous() {
  queue(static_cast<int>(FrameKind::goodbye), {}, false);
  stop_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(bell_.number(), &one, sizeof(one));
  thread_.join();
}

void Rendezvous::queue(int kind, std::string bytes, bool at_once) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.push_back({kind, std::move(bytes)});
  }
  if (!at_once) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(bell_.number(), &one, sizeof(one));
}

void Rendezvous::send_all() {
  std::vector<Frame> frames;
  {
    const std::lock_guard lock(mutex_);
    frames.swap(outbox_);
  }
  for (const Frame& frame : frames) socket_.send(frame.kind, frame.bytes);
}

void Rendezvous::run() {
  while (true) {
    const bool last = stop_;
    send_all();
    if (last) return;
    std::array<pollfd, 2> watched{
        {{socket_.is_open() ? socket_.number() : -1, POLLIN, 0}, {bell_.number(), POLLIN, 0}}};
    poll(watched.data(), watched.size(), kLookMilliseconds);
    std::uint64_t rings = 0;
    if (watched[1].revents != 0) {
      [[maybe_unused]] const ssize_t seen = read(bell_.number(), &rings, sizeof(rings));
    }
    if (watched[0].revents == 0) continue;
    socket_.read_available();
    try {
      while (const auto frame = socket_.next()) handle(*frame);
    } catch (const RunError& error) {
      record(error.what(), error.exit_code());
    }
    if (!socket_.is_open()) record("rank 0 has died: the connection to it ended", ExitCode::run_failed);
  }
}

void Rendezvous::handle(const Frame& frame) {
  WireReader reader(frame.bytes);
  if (static_cast<FrameKind>(frame.kind) == FrameKind::failed) {
    const auto code = static_cast<ExitCode>(reader.number());
    return record(reader.text(), code);
  }
  if (static_cast<FrameKind>(frame.kind) != FrameKind::gathered) return;
  const std::string key = reader.text();
  std::vector<std::string> parts(static_cast<std::size_t>(reader.number()));
  for (std::string& part : parts) part = reader.text();
  const std::lock_guard lock(mutex_);
  gathered_.emplace(key, std::move(parts));
  changed_.notify_all();
}

void Rendezvous::record(const std::string& text, ExitCode code) {
  const std::lock_guard lock(mutex_);
  if (failed_) return;
  failure_ = {text, code};
  failed_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void Rendezvous::check() const {
  if (!failed()) return;
  const std::lock_guard lock(mutex_);
  throw RunError(failure_.text, failure_.code);
}

/// A failure is on its way from rank 0; where it does not come, `otherwise` is one.
void Rendezvous::await_failure(const std::string& otherwise) {
  {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kServerAnswer, [&] { return failed_.load(); })) return;
  }
  record(otherwise, ExitCode::timeout);
}

std::vector<std::string> Rendezvous::gather(const std::string& key, const std::string& group, int member,
                                            std::string bytes, const std::string& purpose) {
  check();
  queue(static_cast<int>(FrameKind::gather), WireWriter().text(key).text(group).number(member).text(bytes).take(),
        true);
  {
    std::unique_lock lock(mutex_);
    const auto arrived = [&] { return failed_ || gathered_.contains(key); };
    if (changed_.wait_for(lock, duration_of(timeout_), arrived) && !failed_)
      return std::move(gathered_.extract(key).mapped());
  }
  if (!failed()) {
    queue(static_cast<int>(FrameKind::overdue_gather),
          WireWriter().number(nanoseconds(timeout_)).text(key).text(group).text(purpose).take(), true);
    await_failure(fmt::format("{}: no answer within {:g} s, not even from rank 0", purpose, timeout_.value));
  }
  check();
  return {};
}

void Rendezvous::open_group(const std::string& key, const std::string& name, const std::vector<int>& world_ranks) {
  queue(static_cast<int>(FrameKind::open_group),
        WireWriter().text(key).text(name).numbers({world_ranks.begin(), world_ranks.end()}).take(), false);
}

void Rendezvous::announce(const AnnouncedCall& call) {
  queue(static_cast<int>(FrameKind::call), to_bytes(call), false);
}

void Rendezvous::overdue(const AnnouncedCall& call, Seconds waited) {
  queue(static_cast<int>(FrameKind::overdue_call), WireWriter().number(nanoseconds(waited)).text(to_bytes(call)).take(),
        true);
  await_failure(fmt::format("no answer within {:g} s to rank {}'s {}, and none from rank 0 either", waited.value, rank_,
                            describe(call.operation)));
}

void Rendezvous::fail(const std::string& text, ExitCode code) {
  queue(static_cast<int>(FrameKind::failed), WireWriter().number(static_cast<int>(code)).text(text).take(), true);
  await_failure(text);
}

}  // namespace reckon
