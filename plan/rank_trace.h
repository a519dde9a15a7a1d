// What one rank did in one step, moment by moment. The ranks' traces share a clock, so that they can be shown together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

struct TraceSpan {
  std::size_t component = 0;        // index into RankTrace::components
  std::int64_t start = 0, end = 0;  // nanoseconds on the common clock
};

/// One side of a message between pipeline stages. Messages between two ranks in one direction match in their order.
struct TraceMessage {
  std::int64_t peer = 0;  // rank on the other side
  bool forward = true;    // an output, else a gradient
  bool sends = true;
  std::int64_t time = 0;  // nanoseconds on the common clock: when it was sent, or when it had arrived
};

struct RankTrace {
  std::int64_t rank = 0, stage = 0;
  std::vector<std::string> components;  // names of TimeComponent
  std::vector<TraceSpan> spans;         // in order, without overlap
  std::vector<TraceMessage> messages;   // in order
};

}  // namespace reckon
