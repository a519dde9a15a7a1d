// Hugging Face config.json -> ModelSpec. Fields that a file leaves out have the default of their model_type.
#pragma once

#include <string>
#include <vector>

#include "plan/model_spec.h"
#include "plan/yaml_document.h"

namespace reckon {

/// Whether the document is a config.json rather than a model file of configs/models.
bool is_hugging_face_config(const YamlValue& document);

/// Throws ConfigError listing what is missing, wrong or cannot be expressed. Fields that neither decide the shape nor
/// are known to be without influence on it are named in ModelSpec::unread_fields.
ModelSpec read_hugging_face_config(const YamlValue& document, const std::string& file);

enum class HuggingFaceUse { read, no_influence, not_understood };

struct HuggingFaceField {
  std::string name;
  int line = 0;
  HuggingFaceUse use = HuggingFaceUse::read;
};

/// The same with what became of every field, in file order.
struct HuggingFaceReading {
  ModelSpec model;
  std::vector<HuggingFaceField> fields;
};
HuggingFaceReading read_hugging_face_fields(const YamlValue& document, const std::string& file);

/// The values of model_type that are understood.
std::vector<std::string> known_model_types();

}  // namespace reckon
