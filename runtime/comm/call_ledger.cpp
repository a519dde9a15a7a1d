#include "runtime/comm/call_ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/errors.h"
#include "runtime/comm/match.h"
#include "runtime/comm/wire.h"

namespace reckon {
namespace {

bool is_message(const Operation& operation) {
  return operation.kind == OperationKind::send || operation.kind == OperationKind::receive;
}

std::optional<std::string> difference(const AnnouncedCall& first, const AnnouncedCall& second) {
  const std::vector<std::int64_t>& counts = announced_counts(second.operation);
  return difference(first.operation, first.member, announcement_of(second.operation, 0, false), counts.data(),
                    second.member);
}

std::string call_heading(const std::string& name, std::int64_t number) {
  return fmt::format("call {} of group {}", number, name);
}

}  // namespace

std::string to_bytes(const AnnouncedCall& call) {
  const Operation& operation = call.operation;
  return WireWriter()
      .text(call.group)
      .number(call.member)
      .number(call.number)
      .number(static_cast<int>(operation.kind))
      .number(static_cast<int>(operation.reduction))
      .number(static_cast<int>(described_type(operation)))
      .number(operation.send.count)
      .number(operation.receive.count)
      .number(operation.peer)
      .numbers(operation.send_counts)
      .numbers(operation.receive_counts)
      .take();
}

AnnouncedCall announced_call(std::string_view bytes) {
  WireReader reader(bytes);
  AnnouncedCall call;
  call.group = reader.text();
  call.member = static_cast<int>(reader.number());
  call.number = reader.number();
  Operation& operation = call.operation;
  operation.kind = static_cast<OperationKind>(reader.number());
  operation.reduction = static_cast<Reduction>(reader.number());
  operation.send.type = operation.receive.type = static_cast<ElementType>(reader.number());
  operation.send.count = reader.number();
  operation.receive.count = reader.number();
  operation.peer = static_cast<int>(reader.number());
  operation.send_counts = reader.numbers();
  operation.receive_counts = reader.numbers();
  return call;
}

void CallLedger::open(const std::string& key, const std::string& name, std::vector<int> world_ranks) {
  const auto [entry, is_new] = groups_.try_emplace(key);
  if (!is_new) return;
  entry->second.name = name;
  entry->second.made.resize(world_ranks.size());
  entry->second.world_ranks = std::move(world_ranks);
}

std::optional<std::string> CallLedger::add(const AnnouncedCall& call) {
  const auto group = groups_.find(call.group);
  const auto members = group == groups_.end() ? 0 : static_cast<int>(group->second.world_ranks.size());
  const auto in_group = [&](int member) { return member >= 0 && member < members; };
  if (!in_group(call.member) || !in_group(call.operation.peer))
    throw RunError(fmt::format("a rank announced a call of group {}, which has not such members", call.group));
  return is_message(call.operation) ? add_message(group->second, call) : add_collective(group->second, call);
}

std::optional<std::string> CallLedger::add_collective(Group& group, const AnnouncedCall& call) {
  std::int64_t& made = group.made[static_cast<std::size_t>(call.member)];
  made = std::max(made, call.number);
  std::vector<AnnouncedCall>& others = group.collectives[call.number];
  for (const AnnouncedCall& other : others) {
    auto detail = difference(other, call);
    if (!detail) detail = difference(call, other);
    if (detail)
      return mismatch_text(call_heading(group.name, call.number), other.operation,
                           group.world_ranks[static_cast<std::size_t>(other.member)],
                           announcement_of(call.operation, 0, false),
                           group.world_ranks[static_cast<std::size_t>(call.member)], *detail);
    if (!has_counts(call.operation)) break;  // without tables, equal to one is equal to all
  }
  others.push_back(call);
  if (others.size() == group.world_ranks.size()) group.collectives.erase(call.number);
  return {};
}

std::optional<std::string> CallLedger::add_message(Group& group, const AnnouncedCall& call) {
  const bool sends = call.operation.kind == OperationKind::send;
  const Pair pair = sends ? Pair{call.member, call.operation.peer} : Pair{call.operation.peer, call.member};
  auto& waiting = group.messages[pair];
  const auto entry = waiting.find(call.number);
  if (entry == waiting.end()) {
    waiting.emplace(call.number, call);
    return {};
  }
  const AnnouncedCall other = entry->second;
  waiting.erase(entry);
  const Operation &sent = (sends ? call : other).operation, &expected = (sends ? other : call).operation;
  if (described_count(sent) == described_count(expected) && described_type(sent) == described_type(expected)) return {};
  const auto world_rank = [&](int member) { return group.world_ranks[static_cast<std::size_t>(member)]; };
  return fmt::format(
      "message {} from rank {} to rank {} in group {} differs: sent are {} {} elements, rank {} expects {} {} elements",
      call.number, world_rank(pair.first), world_rank(pair.second), group.name, described_count(sent),
      name_of(described_type(sent)), world_rank(pair.second), described_count(expected),
      name_of(described_type(expected)));
}

std::string CallLedger::overdue(const AnnouncedCall& call, double seconds) const {
  const Group& group = groups_.at(call.group);
  const auto world_rank = [&](int member) { return group.world_ranks[static_cast<std::size_t>(member)]; };
  const int own = world_rank(call.member);
  std::string missing, heading;
  if (is_message(call.operation)) {
    const bool sends = call.operation.kind == OperationKind::send;
    const int peer = call.operation.peer;
    const Pair pair = sends ? Pair{call.member, peer} : Pair{peer, call.member};
    heading = fmt::format("message {} from rank {} to rank {} in group {}", call.number, world_rank(pair.first),
                          world_rank(pair.second), group.name);
    const auto waiting = group.messages.find(pair);
    if (waiting != group.messages.end() && waiting->second.contains(call.number))
      missing = fmt::format("; rank {} has not made its side", world_rank(peer));
  } else {
    heading = call_heading(group.name, call.number);
    for (int member = 0; member < static_cast<int>(group.made.size()); ++member)
      if (const std::int64_t made = group.made[static_cast<std::size_t>(member)]; made < call.number)
        missing += fmt::format("; rank {} has not made this call (it has made {})", world_rank(member), made);
  }
  if (missing.empty()) missing = "; all its ranks have made this call, but it does not end on the devices";
  return fmt::format("{}: no answer within {:g} s to rank {}'s {}{}", heading, seconds, own, describe(call.operation),
                     missing);
}

std::size_t CallLedger::open_calls() const {
  std::size_t calls = 0;
  for (const auto& [key, group] : groups_) {
    calls += group.collectives.size();
    for (const auto& [pair, waiting] : group.messages) calls += waiting.size();
  }
  return calls;
}

}  // namespace reckon
