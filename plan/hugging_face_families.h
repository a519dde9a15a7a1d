// What the model families of Hugging Face call their sizes: one reader a model_type, from the fields of a config.json
// to a ModelSpec.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "plan/hugging_face_fields.h"
#include "plan/model_spec.h"

namespace reckon {

struct HuggingFaceFamily {
  std::string_view model_type;
  void (*read)(HuggingFaceFields& fields, ModelSpec& model);
};

/// LLaMA and its relatives: RMS norms, rotary positions, gated FFN, also with experts and latent attention.
std::span<const HuggingFaceFamily> llama_families();
/// GPT-2 and its relatives: layer norms, a plain FFN, biases.
std::span<const HuggingFaceFamily> gpt_families();

/// The activation that the first of `names` gives, else `otherwise`; an unknown one is added to the errors.
Activation read_activation(HuggingFaceFields& fields, std::initializer_list<std::string_view> names,
                           std::string otherwise);

/// rope_theta, partial_rotary_factor and rope_scaling, also inside the rope_parameters of newer files.
void read_rope(HuggingFaceFields& fields, ModelSpec& model, double theta);

}  // namespace reckon
