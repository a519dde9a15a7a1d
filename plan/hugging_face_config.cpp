#include "plan/hugging_face_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "plan/check_model.h"
#include "plan/hugging_face_families.h"
#include "plan/hugging_face_fields.h"
#include "plan/hugging_face_ignored.h"

namespace reckon {

namespace {

/// Neither read nor without influence is what is not understood. A field that says "no" (null, false, 0) asks for
/// nothing.
HuggingFaceUse use_of(const YamlEntry& entry, const std::vector<std::string>& unused) {
  if (std::find(unused.begin(), unused.end(), entry.key) == unused.end()) return HuggingFaceUse::read;
  const YamlValue& value = entry.value;
  const bool says_no = value.kind == YamlValue::Kind::null ||
                       (value.kind == YamlValue::Kind::scalar && (value.text == "false" || value.text == "0"));
  return says_no || is_without_influence(entry.key) ? HuggingFaceUse::no_influence : HuggingFaceUse::not_understood;
}

std::vector<HuggingFaceFamily> families() {
  std::vector<HuggingFaceFamily> all;
  for (const std::span<const HuggingFaceFamily> some : {llama_families(), gpt_families()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace

bool is_hugging_face_config(const YamlValue& document) {
  return document.find("model_type") != nullptr;
}

std::vector<std::string> known_model_types() {
  std::vector<std::string> names;
  for (const HuggingFaceFamily& family : families()) names.emplace_back(family.model_type);
  return names;
}

ModelSpec read_hugging_face_config(const YamlValue& document, const std::string& file) {
  return read_hugging_face_fields(document, file).model;
}

HuggingFaceReading read_hugging_face_fields(const YamlValue& document, const std::string& file) {
  std::vector<Diagnostic> errors;
  HuggingFaceFields fields(document, file, errors);
  ModelSpec model;
  model.family = fields.get("model_type", std::string{});
  const std::vector<HuggingFaceFamily> known = families();
  const auto family = std::find_if(known.begin(), known.end(),
                                   [&](const HuggingFaceFamily& one) { return one.model_type == model.family; });
  if (family == known.end()) {
    fields.error("model_type", fmt::format("the model_type '{}' is not one of {}", model.family,
                                           fmt::join(known_model_types(), ", ")));
    throw ConfigError(std::move(errors));
  }
  family->read(fields, model);
  fill_derived_sizes(model);
  if (errors.empty())
    for (const Diagnostic& problem : check_model(model)) errors.push_back({problem.message, file, 0, 0, problem.key});
  if (!errors.empty()) throw ConfigError(std::move(errors));
  HuggingFaceReading reading;
  const std::vector<std::string> unused = fields.unused();
  for (const YamlEntry& entry : document.entries) {
    reading.fields.push_back({entry.key, entry.line, use_of(entry, unused)});
    if (reading.fields.back().use == HuggingFaceUse::not_understood) model.unread_fields.push_back(entry.key);
  }
  reading.model = std::move(model);
  return reading;
}

}  // namespace reckon
