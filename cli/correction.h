// One correction factor in a hardware file, taken from a measured run: what the prediction's device times have to be
// multiplied with to give the measured step.
#pragma once

#include <filesystem>

#include "plan/hardware_spec.h"
#include "plan/load_plan.h"

namespace reckon {

/// Writes the factor of the run in `run_folder` into `hardware_file` and returns what was written. It replaces an
/// earlier one. Throws ConfigError when the run was on other hardware than the file describes, or when no factor
/// between 0.2 and 5 explains its step.
HardwareSpec store_correction(const std::filesystem::path& run_folder, const std::filesystem::path& hardware_file,
                              const ConfigPaths& paths);

/// Removes it. Throws ConfigError when there is none.
HardwareSpec drop_correction(const std::filesystem::path& hardware_file, const ConfigPaths& paths);

}  // namespace reckon
