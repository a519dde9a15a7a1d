#include "runtime/comm/match.h"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

bool reduces(OperationKind kind) {
  return kind == OperationKind::all_reduce || kind == OperationKind::reduce_scatter;
}

std::optional<std::string> different_counts(const Operation& own, int rank, const std::int64_t* counts, int member) {
  if (own.kind == OperationKind::all_to_all) {
    const std::int64_t expected = own.receive_counts[static_cast<std::size_t>(member)];
    if (counts[rank] == expected) return {};
    return fmt::format(": the latter sends {} elements to the former, which expects {}", counts[rank], expected);
  }
  const auto& own_counts = announced_counts(own);
  if (std::equal(own_counts.begin(), own_counts.end(), counts)) return {};
  return " with another table of counts";
}

}  // namespace

bool has_counts(const Operation& operation) {
  return !announced_counts(operation).empty();
}

const std::vector<std::int64_t>& announced_counts(const Operation& operation) {
  return operation.send_counts.empty() ? operation.receive_counts : operation.send_counts;
}

Announcement announcement_of(const Operation& operation, std::int64_t issued, bool payload_inside) {
  return {operation.kind,
          operation.reduction,
          described_type(operation),
          operation.peer,
          described_count(operation),
          issued,
          reinterpret_cast<std::uint64_t>(operation.send.address),
          reinterpret_cast<std::uint64_t>(operation.receive.address),
          payload_inside,
          has_counts(operation)};
}

std::optional<std::string> difference(const Operation& own, int rank, const Announcement& other,
                                      const std::int64_t* counts, int member) {
  const bool same = other.kind == own.kind && other.type == described_type(own) && other.peer == own.peer &&
                    (!reduces(own.kind) || other.reduction == own.reduction);
  if (!same) return "";
  if (other.has_counts != has_counts(own)) return " (one with a table of counts, one without)";
  const bool equal_size = !other.has_counts || own.kind == OperationKind::reduce_scatter;
  if (equal_size && other.count != described_count(own)) return "";
  return other.has_counts ? different_counts(own, rank, counts, member) : std::nullopt;
}

std::string mismatch_text(const std::string& heading, const Operation& own, int world_rank, const Announcement& other,
                          int other_world_rank, const std::string& detail) {
  return fmt::format("{} differs: rank {} called {}, rank {} called {}{}", heading, world_rank, describe(own),
                     other_world_rank, describe_call(other.kind, other.reduction, other.type, other.count, other.peer),
                     detail);
}

Segment part_between(const Operation& own, const std::int64_t* counts, int from, int to, int size) {
  switch (own.kind) {
    case OperationKind::all_gather: return {0, segment_of(own.receive_counts, own.receive.count, size, from).count};
    case OperationKind::all_to_all:
      if (!has_counts(own)) return even_segment(own.send.count, size, to);
      return segment_of({counts, counts + size}, 0, size, to);
    case OperationKind::reduce_scatter: return segment_of(own.send_counts, own.send.count, size, to);
    default: return {0, described_count(own)};
  }
}

Segment place_of(const Operation& own, int from, int size) {
  return segment_of(own.receive_counts, own.receive.count, size, from);
}

}  // namespace reckon
