#include "cli/find_configs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "plan/nearest_name.h"

namespace reckon {

namespace fs = std::filesystem;

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool is_configs_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder / "models", error) && fs::is_directory(folder / "hardware", error);
}

/// PREFIX/bin/reckon -> PREFIX/share/reckon/configs; REPOSITORY/build/PRESET/bin/reckon -> REPOSITORY/configs.
fs::path shipped_configs() {
  const fs::path bin = executable_path().parent_path();
  for (const fs::path& folder :
       {bin.parent_path() / "share/reckon/configs", bin.parent_path().parent_path().parent_path() / "configs"})
    if (is_configs_folder(folder)) return folder;
  throw ConfigError(
      fmt::format("no configs folder belongs to {}; set RECKON_CONFIGS to the folder that has models/ and "
                  "hardware/ in it",
                  executable_path().string()));
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name[0] ? name : "localhost";
}

}  // namespace

fs::path executable_path() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  if (error) throw RunError("/proc/self/exe cannot be read: " + error.message());
  return path;
}

fs::path cache_folder() {
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return fs::path(cache) / "reckon";
  if (const std::string home = variable("HOME"); !home.empty()) return fs::path(home) / ".cache/reckon";
  return {};
}

ConfigPaths find_configs() {
  ConfigPaths paths;
  if (const std::string folder = variable("RECKON_CONFIGS"); !folder.empty()) {
    if (!is_configs_folder(folder))
      throw ConfigError(fmt::format("RECKON_CONFIGS is {}, but no models/ and hardware/ are there", folder));
    paths.configs = folder;
  } else {
    paths.configs = shipped_configs();
  }
  if (const fs::path cache = cache_folder(); !cache.empty())
    paths.local_hardware = cache / "hardware" / (host_name() + ".yaml");
  return paths;
}

std::vector<std::string> known_plans(const ConfigPaths& paths) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(paths.configs / "plans", error))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find_plan(const std::string& name_or_path, const ConfigPaths& paths) {
  std::error_code error;
  if (fs::exists(name_or_path, error) && !fs::is_directory(name_or_path, error)) return name_or_path;
  const fs::path named = paths.configs / "plans" / (name_or_path + ".yaml");
  if (fs::exists(named, error)) return named;
  std::string message = fs::is_directory(name_or_path, error)
                            ? fmt::format("{} is a folder; a plan file was expected", name_or_path)
                            : fmt::format("no plan file {} and no plan of that name in {}", name_or_path,
                                          (paths.configs / "plans").string());
  if (const std::string near = nearest_name(name_or_path, known_plans(paths)); !near.empty())
    message += fmt::format("; did you mean {}?", near);
  throw ConfigError(message);
}

}  // namespace reckon
