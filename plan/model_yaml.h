// Model files of configs/models and the inline model of a plan: one table of keys for reading and for model_yaml's
// writing (spec_yaml.h).
#pragma once

#include <string>
#include <vector>

#include "plan/model_spec.h"
#include "plan/yaml_reader.h"

namespace reckon {

/// Reads every key of `reader` into a model, fills what follows from other keys (kv_heads = heads, head_dim = hidden /
/// heads, expert_ffn_hidden = ffn_hidden), and adds what is wrong, check_model's findings included, to the reader's
/// errors. Unknown keys are errors.
ModelSpec read_model_keys(YamlReader& reader);

/// Every key of a model file, dotted, in the order of writing.
std::vector<std::string> model_keys();

}  // namespace reckon
