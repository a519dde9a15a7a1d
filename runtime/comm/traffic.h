// Counts what a group sends, by collective and element type.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/operation.h"

namespace reckon {

struct TrafficCount {
  std::string collective, dtype;  // names of plan/collective.h; "fp32", "bf16", ...
  std::int64_t calls = 0;
  double bytes_per_rank = 0;  // sent, as bytes_sent_per_rank of plan/collective.h counts them
};

class TrafficCounter {
 public:
  /// Adds one call made by rank `rank` of `size`. Barriers and receives count nothing: a message counts at its sender.
  void count(const Operation& operation, int rank, int size);
  std::vector<TrafficCount> counts() const;
  void reset() { entries_.clear(); }

 private:
  struct Entry {
    std::int64_t calls = 0;
    double bytes = 0;
  };
  std::map<std::pair<OperationKind, ElementType>, Entry> entries_;
};

}  // namespace reckon
