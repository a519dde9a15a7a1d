// `reckon calibrate`: measures this machine and writes a hardware file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct CalibrateOptions {
  std::string out;     // hardware file; empty = the one that `hardware: local` reads
  bool quick = false;  // under 20 s; kept and reused while host, build and date allow
  bool force = false;  // measure again even if the kept one is good
  std::string plan;    // also measure this plan's exact shapes
  std::vector<std::string> overrides;
  std::int64_t ranks = 0;  // 0 = one per core
};

ExitCode calibrate_command(const CalibrateOptions& options, const Output& output);

}  // namespace reckon
