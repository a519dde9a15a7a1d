#include "runtime/train/parameter_store.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/train/initial_weights.h"
#include "runtime/train/memory_account.h"

namespace reckon {
namespace {

/// Parameter names of an op without ".weight": those that its product reads side by side.
std::vector<std::string> modules_of(std::string_view op, std::int64_t layer, bool post_norm) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const std::string attention = prefix + "self_attn.", ffn = prefix + "mlp.";
  if (op == "embedding") return {"model.embed_tokens"};
  if (op == "embedding_norm") return {"model.embed_layernorm"};
  if (op == "attention_norm") return {prefix + "input_layernorm"};
  if (op == "qkv") return {attention + "q_proj", attention + "k_proj", attention + "v_proj"};
  if (op == "qk_norm") return {attention + "q_norm", attention + "k_norm"};
  if (op == "projection") return {attention + "o_proj"};
  if (op == "attention_post_norm") return {prefix + "post_attention_layernorm"};
  if (op == "ffn_norm") return {prefix + (post_norm ? "pre_feedforward_layernorm" : "post_attention_layernorm")};
  if (op == "gate_up") return {ffn + "gate_proj", ffn + "up_proj"};
  if (op == "up") return {ffn + "up_proj"};
  if (op == "down") return {ffn + "down_proj"};
  if (op == "ffn_post_norm") return {prefix + "post_feedforward_layernorm"};
  if (op == "final_norm") return {"model.norm"};
  if (op == "head") return {"lm_head"};
  return {};
}

std::vector<std::string> with_suffix(std::vector<std::string> names, const char* suffix) {
  for (std::string& name : names) name += suffix;
  return names;
}

at::Tensor zeros(std::int64_t elements, const at::TensorOptions& type) {
  const CategoryScope scope(MemoryCategory::parameters);
  return at::zeros({elements}, type);
}

}  // namespace

ParameterStore::ParameterStore(const Plan& plan, ParameterLayout layout, const at::TensorOptions& compute,
                               const at::TensorOptions& accumulator, std::int64_t shard)
    : layout_(std::move(layout)),
      shard_(shard),
      weights_are_shard_(plan.parallel.zero >= 3 && layout_.shards > 1),
      weights_(zeros(weights_are_shard_ ? layout_.shard_elements : layout_.padded_elements, compute)),
      main_gradients_(plan, layout_, accumulator, shard) {
  fill_weights(plan.train.seed);
}

void ParameterStore::fill_weights(std::uint64_t seed) {
  for (const LocalParameter& parameter : layout_.parameters) {
    if (!weights_are_shard_) {
      fill_initial_weight(parameter, seed, view(weights_, parameter));
      continue;
    }
    const FlatRange &unit = layout_.units[layout_.unit_of(parameter.offset)], own = layout_.shard_of(unit, shard_);
    const std::int64_t first = std::max(own.first, parameter.offset);
    const std::int64_t end = std::min(own.end(), parameter.offset + parameter.elements());
    if (first >= end) continue;
    const at::Tensor whole = at::empty(parameter.local_shape, weights_.options());
    fill_initial_weight(parameter, seed, whole);
    own_weights(unit)
        .narrow(0, first - own.first, end - first)
        .copy_(whole.view({-1}).narrow(0, first - parameter.offset, end - first));
  }
}

at::Tensor ParameterStore::own_weights(const FlatRange& unit) const {
  const FlatRange own = layout_.shard_of(unit, shard_);
  return weights_.narrow(0, weights_are_shard_ ? unit.first / layout_.shards : own.first, own.count);
}

at::Tensor ParameterStore::view(const at::Tensor& whole, const LocalParameter& parameter) const {
  return whole.narrow(0, parameter.offset, parameter.elements()).view(parameter.local_shape);
}

const LocalParameter* ParameterStore::find(const std::string& name) const {
  const auto& all = layout_.parameters;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const LocalParameter& p) { return p.whole.name == name; });
  return found == all.end() ? nullptr : &*found;
}

WeightPlace ParameterStore::fused(const std::vector<std::string>& names) const {
  const LocalParameter* first = names.empty() ? nullptr : find(names.front());
  if (first == nullptr) return {};
  WeightPlace place{first->offset, first->local_shape};
  for (std::size_t i = 1; i < names.size(); ++i) {
    const LocalParameter* next = find(names[i]);
    if (next == nullptr || next->offset != place.offset + place.elements())
      throw std::logic_error(fmt::format("{} does not follow {} in the flat buffer", names[i], names[i - 1]));
    place.shape[0] += next->local_shape[0];
  }
  return place;
}

std::vector<OpPlaces> ParameterStore::op_places(const OpList& list, std::int64_t layer) const {
  const std::string in_layer = fmt::format("model.layers.{}.", layer);
  const bool post_norm = find(in_layer + "post_feedforward_layernorm.weight") != nullptr;
  std::vector<OpPlaces> places;
  for (const Op& op : list.ops) {
    std::vector<std::string> modules = modules_of(op.name, layer, post_norm);
    if (op.name == "head" && find("lm_head.weight") == nullptr) modules = {"model.embed_tokens"};  // tied
    OpPlaces place;
    place.weight = fused(with_suffix(modules, ".weight"));
    place.bias = fused(with_suffix(op.name == "head" ? std::vector<std::string>{"lm_head"} : modules, ".bias"));
    if (op.name == "embedding") place.second_weight = fused({"model.embed_positions.weight"});
    if (op.weights > 0 && place.weight.shape.empty())
      throw std::logic_error(fmt::format("no weights found for op '{}' of layer {}", op.name, layer));
    places.push_back(std::move(place));
  }
  return places;
}

std::vector<OpParameters> op_parameters(const std::vector<OpPlaces>& places, const std::vector<FlatWindow>& weights,
                                        const std::vector<FlatWindow>& gradients) {
  std::vector<OpParameters> parameters;
  for (const OpPlaces& place : places)
    parameters.push_back({place.weight.in(weights), place.bias.in(weights), place.weight.in(gradients),
                          place.bias.in(gradients), place.second_weight.in(weights),
                          place.second_weight.in(gradients)});
  return parameters;
}

}  // namespace reckon
