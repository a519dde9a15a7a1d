#include "runtime/comm/traffic.h"

#include <numeric>

#include "plan/collective.h"

namespace reckon {
namespace {

Collective collective_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::all_reduce: return Collective::all_reduce;
    case OperationKind::all_gather: return Collective::all_gather;
    case OperationKind::reduce_scatter: return Collective::reduce_scatter;
    case OperationKind::all_to_all: return Collective::all_to_all;
    case OperationKind::broadcast: return Collective::broadcast;
    default: return Collective::send_receive;
  }
}

double bytes_sent(const Operation& operation, int rank, int size) {
  const std::int64_t width = bytes_of(described_type(operation));
  if (operation.kind == OperationKind::all_to_all && !operation.send_counts.empty())
    return static_cast<double>((operation.send.count - operation.send_counts[static_cast<std::size_t>(rank)]) * width);
  const bool gather = operation.kind == OperationKind::all_gather;
  const std::int64_t count = gather ? operation.receive.count : described_count(operation);
  return bytes_sent_per_rank(collective_of(operation.kind), Bytes(count * width), size);
}

}  // namespace

void TrafficCounter::count(const Operation& operation, int rank, int size) {
  const bool silent = operation.kind == OperationKind::barrier || operation.kind == OperationKind::receive;
  if (silent || size == 1) return;
  Entry& entry = entries_[{operation.kind, described_type(operation)}];
  entry.calls += 1;
  entry.bytes += bytes_sent(operation, rank, size);
}

std::vector<TrafficCount> TrafficCounter::counts() const {
  std::vector<TrafficCount> counts;
  for (const auto& [key, entry] : entries_)
    counts.push_back(
        {std::string(name_of(collective_of(key.first))), std::string(name_of(key.second)), entry.calls, entry.bytes});
  return counts;
}

}  // namespace reckon
