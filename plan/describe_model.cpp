#include "plan/describe_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "plan/parameters.h"

namespace reckon {

namespace {

constexpr std::array<std::string_view, 8> kComponents = {"embedding",      "attention", "router", "experts",
                                                         "shared_experts", "ffn",       "norms",  "head"};

std::string_view component_of(const Parameter& parameter) {
  const auto has = [&](std::string_view part) { return parameter.name.find(part) != std::string::npos; };
  if (has("norm")) return "norms";
  if (has("embed_")) return "embedding";
  if (has("lm_head")) return "head";
  if (has(".self_attn.")) return "attention";
  if (parameter.is_routed_expert()) return "experts";
  if (has(".shared_expert")) return "shared_experts";
  return has(".mlp.gate.") ? "router" : "ffn";
}

}  // namespace

std::vector<ComponentParameters> parameters_by_component(const ModelSpec& model) {
  std::vector<ComponentParameters> table;
  for (const std::string_view name : kComponents) table.push_back({std::string(name), 0, 0});
  const auto row = [&](const Parameter& parameter) -> ComponentParameters& {
    return *std::find_if(table.begin(), table.end(),
                         [&](const ComponentParameters& r) { return r.component == component_of(parameter); });
  };
  const auto add = [&](const std::vector<Parameter>& list, std::int64_t layers) {
    std::vector<ComponentParameters*> seen;
    for (const Parameter& parameter : list) {
      ComponentParameters& component = row(parameter);
      component.parameters += parameter.elements() * std::max<std::int64_t>(layers, 1);
      if (std::find(seen.begin(), seen.end(), &component) == seen.end()) component.layers += layers;
      seen.push_back(&component);
    }
  };
  add(embedding_parameters(model), 0);
  for (const bool moe : {false, true}) {
    std::int64_t count = 0, example = 0;
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
      if (model.layer_is_moe(layer) == moe) ++count, example = layer;
    if (count > 0) add(layer_parameters(model, example), count);
  }
  add(head_parameters(model), 0);
  std::erase_if(table, [](const ComponentParameters& r) { return r.parameters == 0; });
  return table;
}

std::string unread_fields_warning(const ModelSpec& model) {
  if (model.unread_fields.empty()) return {};
  return fmt::format("the model's config.json has fields that were not understood and are left out: {}",
                     fmt::join(model.unread_fields, ", "));
}

}  // namespace reckon
