#include "cli/compared_profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/profile_json.h"

namespace reckon {

namespace fs = std::filesystem;

namespace {

bool file_exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

/// The last part of a path, also of "runs/first/".
std::string last_name(const fs::path& path) {
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

/// Profiles differ by source, or by the file or folder they come from.
std::string name_of_subject(const fs::path& subject, const StepProfile& profile) {
  if (is_folder(subject)) return last_name(subject);
  const std::string source(name_of(profile.source));
  return subject.stem() == source && subject.has_parent_path()
             ? fmt::format("{} {}", last_name(subject.parent_path()), source)
             : subject.stem().string();
}

std::vector<fs::path> finished_runs(const fs::path& folder) {
  if (file_exists(folder / "measured.json")) return {folder};
  std::vector<fs::path> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (file_exists(entry.path() / "measured.json")) runs.push_back(entry.path());
  if (runs.empty())
    throw ConfigError(
        fmt::format("{} is neither the folder of a finished `reckon run` nor a folder of such", folder.string()));
  return runs;
}

}  // namespace

RunProfiles read_run(const fs::path& folder, const ConfigPaths& paths) {
  if (!file_exists(folder / "measured.json"))
    throw ConfigError(
        fmt::format("{} has no measured.json; is it the folder of a finished `reckon run`?", folder.string()));
  RunProfiles run;
  run.predicted = read_profile(folder / "predicted.json", paths);
  if (file_exists(folder / "simulated.json")) run.simulated = read_profile(folder / "simulated.json", paths);
  run.measured = read_profile(folder / "measured.json", paths);
  if (file_exists(folder / "metrics.jsonl")) run.metrics = read_metrics(folder / "metrics.jsonl");
  return run;
}

NamedProfiles read_profiles(const std::vector<std::string>& subjects, const ConfigPaths& paths) {
  NamedProfiles named;
  for (const std::string& subject : subjects) {
    RunProfiles run;
    if (is_folder(subject)) run = read_run(subject, paths);
    else run.measured = read_profile(subject, paths);
    named.profiles.push_back(std::move(run.measured));
    named.metrics.push_back(std::move(run.metrics));
    named.names.push_back(name_of_subject(subject, named.profiles.back()));
  }
  return named;
}

RunHistory read_history(const std::vector<std::string>& folders, const ConfigPaths& paths) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  for (const std::string& folder : folders)
    for (const fs::path& run : finished_runs(folder))
      found.emplace_back(fs::last_write_time(run / "measured.json"), run);
  std::sort(found.begin(), found.end());
  std::vector<PastRun> runs;
  for (const auto& [time, folder] : found) {
    const RunProfiles run = read_run(folder, paths);
    runs.push_back(past_run(last_name(folder), run.predicted, run.measured));
  }
  return run_history(std::move(runs));
}

bool names_plan(const std::string& subject) {
  return !is_folder(subject) && !subject.ends_with(".json");
}

}  // namespace reckon
