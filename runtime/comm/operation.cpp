#include "runtime/comm/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace reckon {

std::string_view name_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::all_reduce: return "all_reduce";
    case OperationKind::all_gather: return "all_gather";
    case OperationKind::reduce_scatter: return "reduce_scatter";
    case OperationKind::all_to_all: return "all_to_all";
    case OperationKind::broadcast: return "broadcast";
    case OperationKind::barrier: return "barrier";
    case OperationKind::send: return "send";
    case OperationKind::receive: return "receive";
  }
  return "";
}

std::string_view name_of(Reduction reduction) {
  return reduction == Reduction::sum ? "sum" : "maximum";
}

Segment even_segment(std::int64_t count, int parts, int index) {
  const std::int64_t quotient = count / parts, rest = count % parts;
  return {index * quotient + std::min<std::int64_t>(index, rest), quotient + (index < rest ? 1 : 0)};
}

Segment segment_of(const std::vector<std::int64_t>& counts, std::int64_t count, int parts, int index) {
  if (counts.empty()) return even_segment(count, parts, index);
  return {std::accumulate(counts.begin(), counts.begin() + index, std::int64_t{0}),
          counts[static_cast<std::size_t>(index)]};
}

std::int64_t described_count(const Operation& operation) {
  const bool receives = operation.kind == OperationKind::receive || operation.kind == OperationKind::broadcast;
  return receives ? operation.receive.count : operation.send.count;
}

ElementType described_type(const Operation& operation) {
  const bool receives = operation.kind == OperationKind::receive || operation.kind == OperationKind::broadcast;
  return receives ? operation.receive.type : operation.send.type;
}

std::string describe(const Operation& operation) {
  return describe_call(operation.kind, operation.reduction, described_type(operation), described_count(operation),
                       operation.peer);
}

std::string describe_call(OperationKind kind, Reduction reduction, ElementType type, std::int64_t count, int peer) {
  if (kind == OperationKind::barrier) return "barrier";
  const std::string size = fmt::format("of {} {} element{}", count, name_of(type), count == 1 ? "" : "s");
  switch (kind) {
    case OperationKind::all_reduce:
    case OperationKind::reduce_scatter: return fmt::format("{} ({}) {}", name_of(kind), name_of(reduction), size);
    case OperationKind::broadcast: return fmt::format("broadcast {} from rank {}", size, peer);
    case OperationKind::send: return fmt::format("send {} to rank {}", size, peer);
    case OperationKind::receive: return fmt::format("receive {} from rank {}", size, peer);
    default: return fmt::format("{} {}", name_of(kind), size);
  }
}

}  // namespace reckon
