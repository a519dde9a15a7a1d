// Names, aliases and paths of hardware -> HardwareSpec.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

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

HardwareSpec load_hardware(const std::string& name_or_path, const ConfigPaths& paths) {
  if (name_or_path == "local") return load_local(paths);
  if (is_path(name_or_path)) return load_file(name_or_path);
  const std::string wanted = folded(name_or_path);
  const std::vector<std::string> names = known_hardware(paths);
  const std::filesystem::path folder = paths.configs / "hardware";
  for (const std::string& name : names) {
    if (folded(name) == wanted) return load_file(folder / (name + ".yaml"));
  }
  std::vector<std::string> known = names;
  for (const std::string& name : names) {
    HardwareSpec hardware = load_file(folder / (name + ".yaml"));
    for (const std::string& alias : hardware.aliases) {
      if (folded(alias) == wanted) return hardware;
      known.push_back(alias);
    }
  }
  known.push_back("local");
  std::string message = fmt::format("there is no hardware {}", describe(YamlValue::scalar(name_or_path)));
  const std::string nearest = nearest_name(name_or_path, known);
  message += nearest.empty() ? fmt::format("; known: {}, local", fmt::join(names, ", "))
                             : fmt::format("; did you mean '{}'?", nearest);
  throw ConfigError(message);
}

}  // namespace reckon
