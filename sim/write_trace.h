// A simulated step as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open.
#pragma once

#include <iosfwd>

#include "sim/simulate_step.h"

namespace reckon {

/// JSON of the Trace Event Format: ranks are processes, streams are threads, waiting members of collectives show as
/// "waiting" slices, messages between stages as flow arrows, memory by category as counters. Written piece by piece, so
/// memory does not grow with the trace. Throws RunError when the stream fails.
void write_trace(const Simulation& simulation, std::ostream& out);

}  // namespace reckon
