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

}  // namespace

ParameterStore::ParameterStore(ParameterLayout layout, at::ScalarType compute, at::ScalarType gradient,
                               std::uint64_t seed)
    : layout_(std::move(layout)) {
  {
    const CategoryScope scope(MemoryCategory::parameters);
    weights_ = at::zeros({layout_.padded_elements}, compute);
  }
  {
    const CategoryScope scope(MemoryCategory::gradients);
    gradients_ = at::zeros({layout_.padded_elements}, gradient);
  }
  for (const LocalParameter& parameter : layout_.parameters)
    fill_initial_weight(parameter, seed, view(weights_, parameter));
}

at::Tensor ParameterStore::view(const at::Tensor& buffer, const LocalParameter& parameter) const {
  return buffer.narrow(0, parameter.offset, parameter.elements()).view(parameter.local_shape);
}

const LocalParameter* ParameterStore::find(const std::string& name) const {
  const auto& all = layout_.parameters;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const LocalParameter& p) { return p.whole.name == name; });
  return found == all.end() ? nullptr : &*found;
}

at::Tensor ParameterStore::fused(const at::Tensor& buffer, const std::vector<std::string>& names) const {
  const LocalParameter* first = names.empty() ? nullptr : find(names.front());
  if (first == nullptr) return {};
  std::vector<std::int64_t> shape = first->local_shape;
  std::int64_t end = first->offset + first->elements();
  for (std::size_t i = 1; i < names.size(); ++i) {
    const LocalParameter* next = find(names[i]);
    if (next == nullptr || next->offset != end)
      throw std::logic_error(fmt::format("{} does not follow {} in the flat buffer", names[i], names[i - 1]));
    shape[0] += next->local_shape[0];
    end += next->elements();
  }
  return buffer.narrow(0, first->offset, end - first->offset).view(shape);
}

std::vector<OpParameters> ParameterStore::op_parameters(const OpList& list, std::int64_t layer) const {
  const std::string in_layer = fmt::format("model.layers.{}.", layer);
  const bool post_norm = find(in_layer + "post_feedforward_layernorm.weight") != nullptr;
  std::vector<OpParameters> parameters;
  for (const Op& op : list.ops) {
    std::vector<std::string> modules = modules_of(op.name, layer, post_norm);
    if (op.name == "head" && find("lm_head.weight") == nullptr) modules = {"model.embed_tokens"};  // tied
    const auto weights = with_suffix(modules, ".weight");
    const auto biases = with_suffix(op.name == "head" ? std::vector<std::string>{"lm_head"} : modules, ".bias");
    OpParameters p{fused(weights_, weights),
                   fused(weights_, biases),
                   fused(gradients_, weights),
                   fused(gradients_, biases),
                   {},
                   {}};
    if (op.weights > 0 && !p.weight.defined())
      throw std::logic_error(fmt::format("no weights found for op '{}' of layer {}", op.name, layer));
    if (op.name == "embedding") {
      p.second_weight = fused(weights_, {"model.embed_positions.weight"});
      p.second_gradient = fused(gradients_, {"model.embed_positions.weight"});
    }
    parameters.push_back(std::move(p));
  }
  return parameters;
}

}  // namespace reckon
