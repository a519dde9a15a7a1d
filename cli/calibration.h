// The measured hardware file of this machine: one per host, kept in the user's cache, measured again when it is stale.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/hardware_spec.h"
#include "plan/load_plan.h"

namespace reckon {

/// Why the file at `paths.local_hardware` should be measured again ("it was measured 40 days ago"); empty = it is good.
std::string reason_to_calibrate(const ConfigPaths& paths);

/// The same for a prediction of this plan: its ops must have been measured in the shapes that it has.
std::string reason_to_calibrate_for(const std::filesystem::path& plan, const std::vector<std::string>& overrides,
                                    const ConfigPaths& paths);

struct CalibrationOptions {
  bool quick = false;
  std::vector<std::string> plans;      // measure the exact shapes of these plans too
  std::vector<std::string> overrides;  // of every plan
  std::filesystem::path out;           // where the hardware file goes
  std::int64_t ranks = 0;              // that measure at the same time; 0 = one per core, no more than the plans have
};

/// Starts reckon-rank, adds host, build and date to its result and what an earlier file of the same machine and build
/// holds of other shapes, writes the file and returns it. Throws RunError.
HardwareSpec calibrate(const CalibrationOptions& options, const Output& output);

/// Whether the plan runs on `hardware: local`.
bool uses_local_hardware(const std::filesystem::path& plan, const std::vector<std::string>& overrides);

/// Measures this machine in the plan's shapes first if the plan needs it and the file is missing, stale or without
/// them. Before that `refuse` is called with the plan, on a stand-in for this machine, to throw what would end it
/// later.
void calibrate_if_needed(const std::filesystem::path& plan, const std::vector<std::string>& overrides,
                         const ConfigPaths& paths, const Output& output,
                         const std::function<void(const Plan&)>& refuse);

}  // namespace reckon
