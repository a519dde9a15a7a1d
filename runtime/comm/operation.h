// One call of a communicator as a value: what a backend has to carry out, and what peers compare.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/comm/buffer_view.h"

namespace reckon {

enum class OperationKind { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, barrier, send, receive };
enum class Reduction { sum, maximum };

std::string_view name_of(OperationKind kind);
std::string_view name_of(Reduction reduction);

struct Operation {
  OperationKind kind = OperationKind::barrier;
  Reduction reduction = Reduction::sum;
  ConstBufferView send;
  BufferView receive;
  int peer = 0;                              // root of a broadcast, other side of a send or receive
  std::vector<std::int64_t> send_counts;     // elements by rank; empty = equal parts (reduce_scatter, all_to_all)
  std::vector<std::int64_t> receive_counts;  // elements by rank; empty = equal parts (all_gather, all_to_all)
};

/// A run of elements inside a buffer.
struct Segment {
  std::int64_t offset = 0, count = 0;

  bool operator==(const Segment&) const = default;
};

/// Part `index` of `count` elements cut into `parts` as evenly as possible; the first `count % parts` get one more.
Segment even_segment(std::int64_t count, int parts, int index);

/// Part `index` of a buffer of `count` elements: by the table, or equal parts where the table is empty.
Segment segment_of(const std::vector<std::int64_t>& counts, std::int64_t count, int parts, int index);

/// "all_reduce (sum) of 1024 fp32 elements", "send of 3 bf16 elements to rank 2".
std::string describe(const Operation& operation);
std::string describe_call(OperationKind kind, Reduction reduction, ElementType type, std::int64_t count, int peer);

/// The size by which a call is described and compared: elements this rank puts in (broadcast: the message).
std::int64_t described_count(const Operation& operation);
ElementType described_type(const Operation& operation);

}  // namespace reckon
