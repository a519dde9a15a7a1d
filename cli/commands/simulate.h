// `reckon simulate`: the plan played event by event.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct SimulateOptions {
  std::string plan;
  std::vector<std::string> overrides;
  std::string memory_limit;  // "40GiB"; empty = the plan's
  std::string trace;         // file for the Perfetto viewer; empty = none
  std::string picture;       // SVG file; empty = none
  std::string html;          // file for the HTML report; empty = none
  bool explain = false;      // what each component would save if it were free
  int samples = 1;           // steps to simulate with sim.jitter
};

/// does_not_fit when an allocation is beyond the limit, after everything was printed.
ExitCode simulate_command(const SimulateOptions& options, const Output& output);

}  // namespace reckon
