// Names, aliases and paths of hardware -> HardwareSpec.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "plan/load_plan.h"
#include "plan/nearest_name.h"
#include "plan/spec_yaml.h"

namespace reckon {

namespace {

/// "RTX 4090", "rtx-4090" and "RTX_4090" are one name.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '-' && c != '_' && c != ' ') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

bool is_path(const std::string& reference) {
  return reference.find('/') != std::string::npos || reference.ends_with(".yaml") || reference.ends_with(".yml");
}

HardwareSpec load_file(const std::filesystem::path& file) {
  return read_hardware(parse_yaml(read_text_file(file), file.string()), file.string());
}

HardwareSpec load_local(const ConfigPaths& paths) {
  std::error_code error;
  if (paths.local_hardware.empty() || !std::filesystem::exists(paths.local_hardware, error)) {
    throw ConfigError(
        fmt::format("hardware 'local' is this machine, which has not been calibrated yet ({} is missing); run `reckon "
                    "calibrate --quick` once",
                    paths.local_hardware.empty() ? "its file" : paths.local_hardware.string()));
  }
  return load_file(paths.local_hardware);
}

HardwareSpec load_known(const std::string& name, const ConfigPaths& paths) {
  return load_file(paths.configs / "hardware" / (name + ".yaml"));
}

}  // namespace

std::string write_hardware(const HardwareSpec& hardware) {
  return write_yaml(hardware_yaml(hardware));
}

std::vector<std::string> known_hardware(const ConfigPaths& paths) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(paths.configs / "hardware", error)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<HardwareSpec> find_hardware(const std::string& name, const ConfigPaths& paths) {
  if (name == "local") return load_local(paths);
  const std::string wanted = folded(name);
  const std::vector<std::string> names = known_hardware(paths);
  for (const std::string& known : names)
    if (folded(known) == wanted) return load_known(known, paths);
  for (const std::string& known : names) {
    HardwareSpec hardware = load_known(known, paths);
    const auto is_wanted = [&](const std::string& alias) { return folded(alias) == wanted; };
    if (std::any_of(hardware.aliases.begin(), hardware.aliases.end(), is_wanted)) return hardware;
  }
  return std::nullopt;
}

HardwareSpec load_hardware(const std::string& name_or_path, const ConfigPaths& paths) {
  if (is_path(name_or_path)) return load_file(name_or_path);
  if (auto found = find_hardware(name_or_path, paths)) return std::move(*found);
  const std::vector<std::string> names = known_hardware(paths);
  std::vector<std::string> known = names;
  for (const std::string& name : names)
    for (const std::string& alias : load_known(name, paths).aliases) known.push_back(alias);
  known.push_back("local");
  std::string message = fmt::format("there is no hardware {}", describe(YamlValue::scalar(name_or_path)));
  const std::string nearest = nearest_name(name_or_path, known);
  message += nearest.empty() ? fmt::format("; known: {}, local", fmt::join(names, ", "))
                             : fmt::format("; did you mean '{}'?", nearest);
  throw ConfigError(message);
}

}  // namespace reckon
