// `reckon compare`: prediction beside measurement, of a run's folder or of any two profiles.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct CompareOptions {
  std::vector<std::string> profiles;    // the folder of a run, or two profile files: prediction, measurement
  std::vector<std::string> tolerances;  // "0.1": step time and peak memory; "memory.stage0.parameters=0": that quantity
};

/// disagreement when a row is beyond a tolerance, after everything was printed.
ExitCode compare_command(const CompareOptions& options, const Output& output);

}  // namespace reckon
