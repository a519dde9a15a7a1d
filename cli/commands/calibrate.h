// `reckon calibrate`: measures this machine and writes a hardware file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct CalibrateOptions {
  std::string out;                 // hardware file; empty = the one that `hardware: local` reads
  bool quick = false;              // under 20 s; kept and reused while host, build and date allow
  bool force = false;              // measure again even if the kept one is good
  std::vector<std::string> plans;  // also measure these plans' exact shapes
  std::vector<std::string> overrides;
  std::int64_t ranks = 0;           // 0 = one per core
  std::string from_run;             // store the correction of this run's folder instead of measuring
  bool without_correction = false;  // remove the stored one instead of measuring
};

ExitCode calibrate_command(const CalibrateOptions& options, const Output& output);

}  // namespace reckon
