// What `reckon compare` is pointed at: folders of runs, profile files, plans.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plan/load_plan.h"
#include "report/read_metrics.h"
#include "report/run_history.h"

namespace reckon {

/// The profiles of a finished run and what it logged.
struct RunProfiles {
  StepProfile predicted;
  std::optional<StepProfile> simulated;
  StepProfile measured;
  std::vector<LoggedStep> metrics;
};

/// Throws ConfigError when the folder is not that of a finished run.
RunProfiles read_run(const std::filesystem::path& folder, const ConfigPaths& paths);

/// Profiles with the names that tell them apart: a folder stands for what was measured in it.
struct NamedProfiles {
  std::vector<std::string> names;
  std::vector<StepProfile> profiles;
  std::vector<std::vector<LoggedStep>> metrics;  // of folders; empty for profile files
};
NamedProfiles read_profiles(const std::vector<std::string>& subjects, const ConfigPaths& paths);

/// All finished runs in the folders and one level below them, the oldest measurement first.
RunHistory read_history(const std::vector<std::string>& folders, const ConfigPaths& paths);

/// True for what is neither a folder nor a JSON file: a plan, by name or path, or an override.
bool names_plan(const std::string& subject);

}  // namespace reckon
