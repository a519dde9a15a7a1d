// Discrete events: plays a Scenario and reports when each task ran. It knows nothing of models or plans.
//
// An instant has two phases. First everything that ends now ends, and whatever that lets start starts. Then the speeds
// of running tasks are settled: work beside a moving transfer is slowed, a transfer beside work is slowed, and
// transfers that cross the same link share it max-min fairly. So the result does not depend on the order of equal
// times.
#pragma once

#include <cstdint>

#include "sim/perturbation.h"
#include "sim/picoseconds.h"
#include "sim/program.h"

namespace reckon {

/// One task of one rank: it reached the head of its stream with all waits fulfilled at `arrival`, and ran from `start`
/// to `end`. Only transfers can start later than they arrive (they wait for the other members).
struct Span {
  std::int32_t rank = 0;
  std::int32_t stream = 0;
  std::int32_t task = 0;  // index in the stream's list
  Picoseconds arrival, start, end;
};

/// Receives every span as it ends, in order of end.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void on_span(const Span& span, const Task& task) = 0;
};

struct EngineResult {
  Picoseconds end;          // of the last task
  std::int64_t events = 0;  // ends of tasks
};

/// Throws std::logic_error when tasks are left that wait for something that never comes.
EngineResult play(const Scenario& scenario, const Perturbation& perturbation, SpanSink& sink);

}  // namespace reckon
