// Named models, model files and config.json -> ModelSpec.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "plan/hugging_face_config.h"
#include "plan/load_plan.h"
#include "plan/model_yaml.h"
#include "plan/nearest_name.h"
#include "plan/spec_yaml.h"
#include "plan/yaml_document.h"

namespace reckon {

namespace {

namespace fs = std::filesystem;

bool is_path(std::string_view text) {
  const auto ends = [&](std::string_view ending) { return text.ends_with(ending); };
  return text.find('/') != std::string_view::npos || ends(".yaml") || ends(".yml") || ends(".json");
}

/// A config.json is called by its folder, any other file by itself.
std::string name_of_file(const fs::path& file) {
  const bool by_folder = file.filename() == "config.json" && file.has_parent_path();
  const std::string name = (by_folder ? file.parent_path().filename() : file.stem()).string();
  return name.empty() || name == "." || name == ".." ? "model" : name;
}

ModelSpec read_file(const fs::path& file) {
  const std::string shown = file.string();
  const YamlValue document = parse_yaml(read_text_file(file), shown);
  if (file.extension() == ".json" && !is_hugging_face_config(document))
    throw ConfigError({{"this JSON file has no model_type; a Hugging Face config.json is expected", shown, 1, 1, {}}});
  ModelSpec model = read_model(document, shown);
  if (model.name.empty()) model.name = name_of_file(file);
  return model;
}

fs::path models_folder(const ConfigPaths& paths) {
  return paths.configs / "models";
}

/// The file of the model that lists `name` among its aliases; empty if there is none.
fs::path file_with_alias(const std::string& name, const ConfigPaths& paths) {
  for (const std::string& known : known_models(paths)) {
    fs::path file = models_folder(paths) / (known + ".yaml");
    const std::vector<std::string> aliases = read_file(file).aliases;
    if (std::find(aliases.begin(), aliases.end(), name) != aliases.end()) return file;
  }
  return {};
}

[[noreturn]] void refuse_name(const std::string& name, const ConfigPaths& paths) {
  std::string message =
      fmt::format("there is no model {} in {}", describe(YamlValue::scalar(name)), models_folder(paths).string());
  const std::string nearest = nearest_name(name, known_models(paths));
  if (!nearest.empty()) message += fmt::format("; did you mean '{}'?", nearest);
  throw ConfigError(message + (nearest.empty() ? "; 'reckon show models' lists them" : ""));
}

}  // namespace

ModelSpec read_model(const YamlValue& document, const std::string& file) {
  if (is_hugging_face_config(document)) return read_hugging_face_config(document, file);
  std::vector<Diagnostic> errors;
  YamlReader reader(document, file, errors);
  ModelSpec model = read_model_keys(reader);
  if (!errors.empty()) throw ConfigError(std::move(errors));
  return model;
}

ModelSpec load_model(const std::string& name_or_path, const ConfigPaths& paths) {
  std::error_code unusable;  // such as a name that is too long: there is no such file
  if (is_path(name_or_path)) {
    const fs::path path = name_or_path;
    return read_file(fs::is_directory(path, unusable) ? path / "config.json" : path);
  }
  fs::path file = models_folder(paths) / (name_or_path + ".yaml");
  if (!fs::exists(file, unusable)) file = file_with_alias(name_or_path, paths);
  if (file.empty()) refuse_name(name_or_path, paths);
  return read_file(file);
}

std::vector<std::string> known_models(const ConfigPaths& paths) {
  std::vector<std::string> names;
  std::error_code no_folder;
  for (const fs::directory_entry& entry : fs::directory_iterator(models_folder(paths), no_folder))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace reckon
