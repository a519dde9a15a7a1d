#include "cli/commands/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "cli/find_configs.h"
#include "plan/describe_model.h"
#include "plan/nearest_name.h"
#include "plan/read_only_file.h"
#include "report/write_catalogue.h"

namespace reckon {

namespace {

std::string models(const Output& output, const ConfigPaths& paths) {
  std::vector<ModelSpec> all;
  for (const std::string& name : known_models(paths)) all.push_back(load_model(name, paths));
  return output.json() ? models_json(all) : models_text(all, output.style());
}

std::string hardware(const Output& output, const ConfigPaths& paths) {
  std::vector<HardwareSpec> all;
  for (const std::string& name : known_hardware(paths)) all.push_back(load_hardware(name, paths));
  return output.json() ? hardware_list_json(all) : hardware_list_text(all, output.style());
}

std::string plans(const Output& output, const ConfigPaths& paths) {
  const auto names = known_plans(paths);
  return output.json() ? names_json("plans", names) : fmt::format("{}\n", fmt::join(names, "\n"));
}

std::string one_model(const std::string& name, const Output& output, const ConfigPaths& paths) {
  const ModelSpec model = load_model(name, paths);
  if (const std::string unread = unread_fields_warning(model); !unread.empty()) output.warning(unread);
  return output.json() ? models_json({model}) : model_text(model, output.style());
}

std::string one_hardware(const HardwareSpec& machine, const Output& output) {
  return output.json() ? hardware_list_json({machine}) : hardware_text(machine, output.style());
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void fail_unknown(const std::string& name, const ConfigPaths& paths) {
  std::vector<std::string> known = {"models", "hardware", "plans", "formats", "local"};
  for (const auto& names : {known_models(paths), known_hardware(paths)})
    known.insert(known.end(), names.begin(), names.end());
  std::string message = fmt::format("{} is neither a file nor a known model or hardware", name);
  const std::string near = nearest_name(name, known);
  message += near.empty() ? "." : fmt::format("; did you mean {}?", near);
  if (contains(known_plans(paths), name)) message = fmt::format("{0} is a plan: `reckon plan {0}` predicts it.", name);
  throw ConfigError(message + " See `reckon show models`, `reckon show hardware` and `reckon show plans`.");
}

/// Hardware files, and they alone, have a top-level `device`.
bool is_hardware_file(const std::string& path) {
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("device:")) return true;
  return false;
}

}  // namespace

ExitCode show_command(const ShowOptions& options, const Output& output) {
  const ConfigPaths paths = find_configs();
  const std::string& what = options.what;
  std::string text;
  if (what == "models") {
    text = models(output, paths);
  } else if (what == "hardware") {
    text = hardware(output, paths);
  } else if (what == "plans") {
    text = plans(output, paths);
  } else if (what == "formats") {
    text = output.json() ? formats_json() : formats_text(output.style());
  } else if (contains(known_models(paths), what)) {
    text = one_model(what, output, paths);
  } else if (const auto machine = find_hardware(what, paths)) {
    text = one_hardware(*machine, output);
  } else if (path_exists(what)) {
    text = is_hardware_file(what) ? one_hardware(load_hardware(what, paths), output) : one_model(what, output, paths);
  } else {
    fail_unknown(what, paths);
  }
  output.result(text);
  return ExitCode::success;
}

}  // namespace reckon
