#include "cost_model/score_sources.h"

#include <vector>

#include "plan/errors.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

void read_texts(YamlReader& reader, const std::string& key, std::map<std::string, std::string>& target) {
  std::optional<YamlReader> child = reader.child(key);
  if (!child) return;
  for (const std::string& name : child->keys()) {
    const YamlValue* value = child->value(name);
    if (value->kind != YamlValue::Kind::scalar) child->error(name, "a single value is needed");
    else target[name] = value->text;
  }
  child->finish();
}

void read_numbers(YamlReader& reader, const std::string& key, std::map<std::string, double>& target) {
  std::optional<YamlReader> child = reader.child(key);
  if (!child) return;
  for (const std::string& name : child->keys()) child->read(name, target[name]);
  child->finish();
}

ScoreSource read_source(YamlReader& reader) {
  ScoreSource source;
  read_texts(reader, "cells", source.cells);
  read_texts(reader, "tied", source.tied_models);
  read_texts(reader, "vocabulary", source.vocabulary);
  read_texts(reader, "hardware", source.hardware);
  read_texts(reader, "plan", source.plan);
  read_numbers(reader, "attention_rate", source.attention_rate);
  reader.read("split_by_cost", source.split_by_cost);
  std::string total = "peak_allocated", stage = "largest", comment;
  reader.read("why", comment);
  reader.read("memory_total", total);
  reader.read("memory_stage", stage);
  if (total == "device_used") source.memory_total = MemoryTotal::device_used;
  else if (total == "peak_reserved") source.memory_total = MemoryTotal::peak_reserved;
  else if (total != "peak_allocated")
    reader.error("memory_total", "'" + total + "' is not one of peak_allocated, peak_reserved, device_used");
  if (stage == "first") source.memory_stage = MemoryStage::first;
  else if (stage == "last") source.memory_stage = MemoryStage::last;
  else if (stage != "largest") reader.error("memory_stage", "'" + stage + "' is not one of largest, first, last");
  reader.finish();
  return source;
}

}  // namespace

std::map<std::string, ScoreSource> load_score_sources(const std::filesystem::path& file) {
  const YamlValue document = parse_yaml(read_text_file(file), file.string());
  const std::string name = file.string();
  std::vector<Diagnostic> errors;
  YamlReader reader(document, name, errors);
  std::map<std::string, ScoreSource> sources;
  for (const std::string& id : reader.keys())
    if (std::optional<YamlReader> child = reader.child(id)) sources[id] = read_source(*child);
  if (!errors.empty()) throw ConfigError(std::move(errors));
  return sources;
}

}  // namespace reckon
