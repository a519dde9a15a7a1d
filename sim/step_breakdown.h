// Where a rank's step goes, and what the whole step's time hangs on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/step_profile.h"
#include "sim/span_table.h"
#include "sim/step_graph.h"

namespace reckon {

/// Busy and exposed seconds of one rank by component; the exposed seconds sum to `end` exactly.
/// - Work is exposed for as long as it would take alone. What it takes longer beside communication is exposed time of
///   that communication, in proportion to how long each ran beside it.
/// - A gap of the compute stream is walked backwards from the task that ends it: a transfer it waited for is exposed
///   while it moved; before that, while other members were missing, the rank was "waiting"; a message is exposed while
///   it was on its way; before that the gap is "bubble".
std::vector<TimeComponent> break_down(const SpanTable& table, const Labels& labels, int rank, Picoseconds end,
                                      const Perturbation& perturbation);

/// One piece of the chain of tasks that determines the end of the step.
struct CriticalPiece {
  std::string component;
  int rank = 0;
  Picoseconds start, end;
};

/// From time 0 to the end without gaps: each piece starts when the one before it ends. Needs a table of all ranks.
std::vector<CriticalPiece> critical_path(const SpanTable& table, const Labels& labels, int ranks);

/// Seconds of the critical path by component, largest first.
std::vector<TimeComponent> sum_by_component(const std::vector<CriticalPiece>& path);

}  // namespace reckon
