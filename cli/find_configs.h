// Where the shipped models, hardware and plans lie, and where this machine's own calibration is kept.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plan/load_plan.h"

namespace reckon {

/// The running executable's file.
std::filesystem::path executable_path();

/// $XDG_CACHE_HOME/reckon or ~/.cache/reckon; empty when neither variable is set.
std::filesystem::path cache_folder();

/// RECKON_CONFIGS, else the configs folder beside the build tree or installation this executable belongs to. Throws
/// ConfigError when there is none.
ConfigPaths find_configs();

/// A path, or the name of a plan in configs/plans. Throws ConfigError with the nearest known name.
std::filesystem::path find_plan(const std::string& name_or_path, const ConfigPaths& paths);
std::vector<std::string> known_plans(const ConfigPaths& paths);

}  // namespace reckon
