// Models and hardware <-> YAML trees: the content of their files, and of `model:` and `hardware:` in a plan that holds
// them whole. What read_* reads, the other function writes, so that both directions give the same value.
#pragma once

#include <string>

#include "plan/hardware_spec.h"
#include "plan/model_spec.h"
#include "plan/yaml_document.h"

namespace reckon {

/// A model file's mapping (YAML of configs/models or a Hugging Face config.json). Throws ConfigError listing every
/// wrong key with file, line and column.
ModelSpec read_model(const YamlValue& document, const std::string& file);
YamlValue model_yaml(const ModelSpec& model);

/// A hardware file's mapping.
HardwareSpec read_hardware(const YamlValue& document, const std::string& file);
YamlValue hardware_yaml(const HardwareSpec& hardware);

}  // namespace reckon
