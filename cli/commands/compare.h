// `reckon compare`: prediction beside measurement, of a run's folder or of any profiles; runs over time; two plans.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct CompareOptions {
  std::vector<std::string> subjects;    // a run folder; profiles or run folders; or plans with overrides
  std::vector<std::string> tolerances;  // "0.1": step time and peak memory; "memory.stage0.parameters=0": that quantity
  bool history = false;                 // the subjects are run folders, or folders of such
  std::string html;                     // file for the HTML report; empty = none
};

/// disagreement when a row is beyond a tolerance, after everything was printed.
ExitCode compare_command(const CompareOptions& options, const Output& output);

}  // namespace reckon
