#include "plan/replicated_weights.h"

#include <algorithm>

namespace reckon {

std::int64_t key_value_replicas(const Plan& plan) {
  return std::max<std::int64_t>(1, plan.parallel.tensor / std::max<std::int64_t>(1, plan.model.kv_heads));
}

std::int64_t gradient_replicas(const Plan& plan, const Parameter& parameter) {
  if (parameter.split == Split::replicated) return plan.parallel.sequence ? plan.parallel.tensor : 1;
  return parameter.split == Split::kv_rows ? key_value_replicas(plan) : 1;
}

namespace {

std::vector<Parameter> section_parameters(const ModelSpec& model, Section section) {
  if (section == Section::embedding) return embedding_parameters(model);
  if (section == Section::head) return head_parameters(model);
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (model.layer_is_moe(layer) == (section == Section::moe_layer)) return layer_parameters(model, layer);
  return {};
}

}  // namespace

std::vector<ReplicatedSum> replicated_sums(const Plan& plan, Section section) {
  if (!plan.parallel.sequence && key_value_replicas(plan) == 1) return {};
  std::vector<ReplicatedSum> sums;
  for (const Parameter& parameter : section_parameters(plan.model, section)) {
    const std::int64_t ranks = gradient_replicas(plan, parameter);
    const std::int64_t held =
        parameter.split == Split::kv_rows ? parameter.elements() / plan.model.kv_heads : parameter.elements();
    if (ranks > 1) sums.push_back({Bytes(4 * held), ranks});
  }
  return sums;
}

}  // namespace reckon
