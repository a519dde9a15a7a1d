#include "runtime/comm/rendezvous_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <numeric>

#include "runtime/comm/rendezvous_frames.h"
#include "runtime/comm/wire.h"

namespace reckon {
namespace {

constexpr int kLookMilliseconds = 50;
constexpr std::chrono::seconds kFarewell{5};

Deadline after(Seconds time) {
  return Deadline::clock::now() +
         std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(time.value));
}

/// "rank 3", "ranks 3, 5, 7", at most ten of them.
std::string list_of(std::vector<int> ranks) {
  const std::size_t all = ranks.size();
  if (all > 10) ranks.resize(10);
  return fmt::format("rank{} {}{}", all == 1 ? "" : "s", fmt::join(ranks, ", "), all > 10 ? ", ..." : "");
}

std::string failure_bytes(const std::string& text, ExitCode code) {
  return WireWriter().number(static_cast<int>(code)).text(text).take();
}

}  // namespace

RendezvousServer::RendezvousServer(const std::string& address, int port, int ranks, Seconds timeout)
    : address_(address),
      port_(port),
      ranks_(ranks),
      timeout_(timeout),
      presence_deadline_(after(timeout)),
      listener_(listen_on(address, port_)) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  ledger_.open("world", "world", std::move(all));
  thread_ = std::thread(&RendezvousServer::run, this);
}

RendezvousServer::~RendezvousServer() {
  stop_ = true;
  thread_.join();
}

void RendezvousServer::run() {
  std::optional<Deadline> farewell;
  while (true) {
    look(kLookMilliseconds);
    check_presence();
    if (!stop_) continue;
    if (!farewell) farewell = Deadline::clock::now() + kFarewell;
    if (everybody_left() || Deadline::clock::now() > *farewell) return;
  }
}

bool RendezvousServer::everybody_left() const {
  return std::ranges::all_of(connections_, [](const Connection& connection) {
    return connection.said_goodbye || !connection.socket.is_open();
  });
}

void RendezvousServer::look(int milliseconds) {
  std::vector<pollfd> watched{{listener_.number(), POLLIN, 0}};
  for (const Connection& connection : connections_)
    watched.push_back({connection.socket.is_open() ? connection.socket.number() : -1, POLLIN, 0});
  if (poll(watched.data(), watched.size(), milliseconds) <= 0) return;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = connections_[i];
    if (watched[i + 1].revents == 0) continue;
    connection.socket.read_available();
    try {
      while (const auto frame = connection.socket.next()) handle(connection, *frame);
    } catch (const std::exception& error) {  // on this thread it would end the process
      fail(error.what(), ExitCode::run_failed);
    }
    if (!connection.socket.is_open() && connection.rank && !connection.said_goodbye)
      fail(fmt::format("rank {} has died: its connection to rank 0 ended", *connection.rank), ExitCode::run_failed);
  }
  while (auto socket = accept_from(listener_)) connections_.push_back({std::move(*socket), {}, false});
}

void RendezvousServer::check_presence() {
  if (all_present_ || !failure_.empty() || Deadline::clock::now() < presence_deadline_) return;
  std::vector<int> missing;
  for (int rank = 0; rank < ranks_; ++rank)
    if (std::ranges::none_of(connections_, [&](const Connection& connection) { return connection.rank == rank; }))
      missing.push_back(rank);
  fail(fmt::format("{} of {} {} not connected to rank 0 at {}:{} within {:g} s; {} started, and with this address and "
                   "port?",
                   list_of(missing), ranks_, missing.size() == 1 ? "has" : "have", address_, port_, timeout_.value,
                   missing.size() == 1 ? "is it" : "are they"),
       ExitCode::timeout);
}

void RendezvousServer::greet(Connection& connection, const Frame& frame) {
  WireReader reader(frame.bytes);
  const int rank = static_cast<int>(reader.number()), ranks = static_cast<int>(reader.number());
  if (reader.text() != kProtocol)
    return fail("a rank speaks another version of reckon than rank 0", ExitCode::run_failed);
  if (ranks != ranks_ || rank < 0 || rank >= ranks_)
    return fail(fmt::format("rank 0 waits for {} ranks, but a process calls itself rank {} of {}", ranks_, rank, ranks),
                ExitCode::configuration);
  if (std::ranges::any_of(connections_, [&](const Connection& other) { return other.rank == rank; }))
    return fail(fmt::format("two processes call themselves rank {}; each needs its own RANK", rank),
                ExitCode::configuration);
  connection.rank = rank;
  if (!failure_.empty()) connection.socket.send(static_cast<int>(FrameKind::failed), failure_);  // it came late
  all_present_ =
      std::ranges::count_if(connections_, [](const Connection& one) { return one.rank.has_value(); }) == ranks_;
}

void RendezvousServer::handle(Connection& connection, const Frame& frame) {
  const auto kind = static_cast<FrameKind>(frame.kind);
  if (kind == FrameKind::hello) return greet(connection, frame);
  if (!connection.rank) {  // something that is no rank has found the port
    connection.socket = FrameSocket(Descriptor());
    return;
  }
  WireReader reader(frame.bytes);
  switch (kind) {
    case FrameKind::open_group: {
      const std::string key = reader.text(), name = reader.text();
      const std::vector<std::int64_t> ranks = reader.numbers();
      return ledger_.open(key, name, {ranks.begin(), ranks.end()});
    }
    case FrameKind::gather: return gather(frame);
    case FrameKind::call: {
      if (const auto mismatch = ledger_.add(announced_call(frame.bytes))) fail(*mismatch, ExitCode::run_failed);
      return;
    }
    case FrameKind::overdue_call: {
      const double seconds = static_cast<double>(reader.number()) * 1e-9;
      return fail(ledger_.overdue(announced_call(reader.text()), seconds), ExitCode::timeout);
    }
    case FrameKind::overdue_gather: {
      const double seconds = static_cast<double>(reader.number()) * 1e-9;
      const std::string key = reader.text(), group = reader.text(), purpose = reader.text();
      return fail(fmt::format("{}: no answer within {:g} s; {}", purpose, seconds, who_is_missing(key, group)),
                  ExitCode::timeout);
    }
    case FrameKind::failed: {
      const auto code = static_cast<ExitCode>(reader.number());
      return fail(reader.text(), code);
    }
    case FrameKind::goodbye: connection.said_goodbye = true; return;
    default: return;
  }
}

void RendezvousServer::gather(const Frame& frame) {
  WireReader reader(frame.bytes);
  const std::string key = reader.text(), group = reader.text();
  const auto member = static_cast<std::size_t>(reader.number());
  if (!ledger_.has(group) || member >= ledger_.world_ranks(group).size())
    throw RunError(fmt::format("a rank gathers in group {}, which has no such member", group));
  const std::vector<int>& ranks = ledger_.world_ranks(group);
  Gathering& gathering = gatherings_[key];
  gathering.bytes.resize(ranks.size());
  gathering.bytes[member] = reader.text();
  if (!std::ranges::all_of(gathering.bytes, [](const auto& bytes) { return bytes.has_value(); })) return;
  WireWriter answer;
  answer.text(key).number(static_cast<std::int64_t>(ranks.size()));
  for (const auto& bytes : gathering.bytes) answer.text(*bytes);
  gatherings_.erase(key);
  const std::string bytes = answer.take();
  for (Connection& connection : connections_)
    if (connection.rank && std::ranges::find(ranks, *connection.rank) != ranks.end())
      connection.socket.send(static_cast<int>(FrameKind::gathered), bytes);
}

std::string RendezvousServer::who_is_missing(const std::string& key, const std::string& group) const {
  const auto gathering = gatherings_.find(key);
  if (gathering == gatherings_.end() || !ledger_.has(group)) return "the answer did not arrive";
  std::vector<int> missing;
  for (std::size_t member = 0; member < gathering->second.bytes.size(); ++member)
    if (!gathering->second.bytes[member]) missing.push_back(ledger_.world_ranks(group)[member]);
  return fmt::format("{} did not come", list_of(missing));
}

void RendezvousServer::fail(const std::string& text, ExitCode code) {
  if (!failure_.empty()) return;
  failure_ = failure_bytes(text, code);
  for (Connection& connection : connections_)
    if (connection.socket.is_open()) connection.socket.send(static_cast<int>(FrameKind::failed), failure_);
}

}  // namespace reckon
