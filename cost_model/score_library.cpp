// Models and hardware that rows of measured runs may name, from the configs folder.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>

#include "cost_model/score.h"
#include "cost_model/score_cells.h"
#include "plan/errors.h"
#include "plan/plan_schema.h"

namespace reckon {

namespace {

/// Names and aliases, normalized like model names ("RTX A6000" = "rtx-a6000").
template <class Spec>
class Catalogue {
 public:
  void add(const std::string& name, const std::shared_ptr<const Spec>& spec) {
    by_name_.emplace(normalized_model_name(name), spec);
  }
  std::optional<Spec> find(const std::string& name) const {
    const auto found = by_name_.find(normalized_model_name(name));
    return found == by_name_.end() ? std::nullopt : std::optional<Spec>(*found->second);
  }

 private:
  std::map<std::string, std::shared_ptr<const Spec>> by_name_;
};

Catalogue<HardwareSpec> hardware_catalogue(const ConfigPaths& paths) {
  Catalogue<HardwareSpec> catalogue;
  for (const std::string& name : known_hardware(paths)) {
    const auto spec = std::make_shared<const HardwareSpec>(load_hardware(name, paths));
    catalogue.add(name, spec);
    catalogue.add(spec->device.name, spec);
    for (const std::string& alias : spec->aliases) catalogue.add(alias, spec);
  }
  return catalogue;
}

Catalogue<ModelSpec> model_catalogue(const ConfigPaths& paths) {
  Catalogue<ModelSpec> catalogue;
  for (const std::string& name : known_models(paths)) {
    const auto spec = std::make_shared<const ModelSpec>(load_model(name, paths));
    catalogue.add(name, spec);
    catalogue.add(spec->name, spec);
  }
  return catalogue;
}

/// "A100" with 40 GiB is A100-40GB where that is known; else the size overrides the capacity.
std::optional<HardwareSpec> hardware_of(const Catalogue<HardwareSpec>& catalogue, const std::string& gpu,
                                        std::optional<double> memory_gib) {
  if (memory_gib) {
    const std::string variant = fmt::format("{}-{}GB", gpu, std::llround(*memory_gib));
    if (std::optional<HardwareSpec> found = catalogue.find(variant)) return found;
  }
  std::optional<HardwareSpec> found = catalogue.find(gpu);
  if (!found || !memory_gib) return found;
  const double nominal = static_cast<double>(found->device.memory.value) / kGiB;
  if (std::abs(nominal / *memory_gib - 1.0) > 0.08)
    found->device.memory = Bytes(static_cast<std::int64_t>(*memory_gib * kGiB));
  return found;
}

/// The clusters that sources name, by name.
std::map<std::string, HardwareSpec> source_clusters(const std::map<std::string, ScoreSource>& sources,
                                                    const ConfigPaths& paths) {
  std::map<std::string, HardwareSpec> clusters;
  for (const auto& [id, source] : sources)
    for (const auto& [gpu, name] : source.hardware)
      if (!clusters.contains(name)) clusters.emplace(name, load_hardware(name, paths));
  return clusters;
}

void set_plan_key(Plan& plan, const std::string& path, const std::string& value) {
  const PlanKey* key = find_plan_key(path);
  if (key == nullptr) throw ConfigError(unknown_plan_key(path));
  if (!key->set) throw ConfigError("'" + path + "' cannot be overridden in a score: it comes from the row");
  key->set(parse_yaml(value, "override " + path), plan);
}

}  // namespace

ScoreLibrary score_library(const ConfigPaths& paths) {
  ScoreLibrary library;
  const auto hardware = std::make_shared<const Catalogue<HardwareSpec>>(hardware_catalogue(paths));
  const auto models = std::make_shared<const Catalogue<ModelSpec>>(model_catalogue(paths));
  library.model = [models](const std::string& name) { return models->find(name); };
  library.hardware = [hardware](const std::string& gpu, std::optional<double> memory_gib) {
    return hardware_of(*hardware, gpu, memory_gib);
  };
  library.sources = load_score_sources(paths.configs / "score" / "sources.yaml");
  library.hardware_named = [clusters = source_clusters(library.sources, paths)](const std::string& name) {
    return clusters.at(name);
  };
  library.set = set_plan_key;
  return library;
}

}  // namespace reckon
