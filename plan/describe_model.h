// Where a model's weights are: the table of `reckon show MODEL`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/model_spec.h"

namespace reckon {

struct ComponentParameters {
  std::string component;    // embedding, attention, ffn, router, experts, shared_experts, norms, head
  std::int64_t layers = 0;  // layers that have it; 0 for embedding, final norm and head
  std::int64_t parameters = 0;
};

/// Components in model order, those without weights left out; the parameters sum to count_parameters.
std::vector<ComponentParameters> parameters_by_component(const ModelSpec& model);

/// A sentence naming the fields of a config.json that were not understood; empty if there are none.
std::string unread_fields_warning(const ModelSpec& model);

}  // namespace reckon
