#include "plan/hugging_face_families.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <utility>

namespace reckon {

Activation read_activation(HuggingFaceFields& fields, std::initializer_list<std::string_view> names,
                           std::string otherwise) {
  static const std::map<std::string, Activation, std::less<>> kKnown = {
      {"silu", Activation::silu},          {"swish", Activation::silu},
      {"gelu", Activation::gelu},          {"gelu_new", Activation::gelu},
      {"gelu_fast", Activation::gelu},     {"gelu_pytorch_tanh", Activation::gelu},
      {"gelu_python", Activation::gelu},   {"relu", Activation::relu},
      {"relu2", Activation::squared_relu}, {"squared_relu", Activation::squared_relu}};
  const std::string name = fields.get(names, std::move(otherwise));
  if (const auto found = kKnown.find(name); found != kKnown.end()) return found->second;
  fields.error(*names.begin(), fmt::format("the activation '{}' is not one of silu, gelu, relu, relu2", name));
  return Activation::silu;
}

void read_rope(HuggingFaceFields& fields, ModelSpec& model, double theta) {
  model.position = Position::rope;
  model.rope_theta = fields.get({"rope_theta", "rotary_emb_base"}, theta);
  model.rope_fraction = fields.get({"partial_rotary_factor", "rotary_pct"}, model.rope_fraction);
  model.rope_theta = fields.get_nested("rope_parameters", "rope_theta", model.rope_theta);
  for (const char* outer : {"rope_scaling", "rope_parameters"}) {
    for (const char* kind : {"type", "rope_type"})
      model.rope_scaling = fields.get_nested(outer, kind, model.rope_scaling);
    model.rope_scaling_factor = fields.get_nested(outer, "factor", model.rope_scaling_factor);
    model.rope_low_frequency_factor = fields.get_nested(outer, "low_freq_factor", model.rope_low_frequency_factor);
    model.rope_high_frequency_factor = fields.get_nested(outer, "high_freq_factor", model.rope_high_frequency_factor);
    model.rope_original_positions =
        fields.get_nested(outer, "original_max_position_embeddings", model.rope_original_positions);
  }
  if (model.rope_scaling == "default") model.rope_scaling.clear();
}

}  // namespace reckon
