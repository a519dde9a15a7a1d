#include "runtime/train/check_gradients.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "plan/kept_tensors.h"
#include "runtime/train/rank_trainer.h"

namespace reckon {
namespace {

/// Gradients in fp32 on every replica.
Plan with_plain_gradients(Plan plan) {
  plan.parallel.zero = 0;
  plan.parallel.zero_group = 0;
  plan.gradients = GradientSpec{};
  plan.optimizer = OptimizerSpec{};
  plan.optimizer.kind = OptimizerKind::sgd;  // no moments
  return plan;
}

/// One stage's gradients with the group and layer of each parameter that this rank counts.
struct StepGradients {
  struct Part {
    std::string group;
    std::int64_t layer;
    at::Tensor gradient;
  };
  std::vector<Part> parts;
};

/// By name: where a weight lies in the buffer depends on the ZeRO stage.
void copy_weights(const ParameterStore& from, const ParameterStore& to) {
  for (const LocalParameter& parameter : to.layout().parameters)
    to.view(to.weights(), parameter).copy_(from.view(from.weights(), *from.find(parameter.whole.name)));
}

StepGradients step_gradients(const Plan& plan, Communicator& world, const TokenStream& tokens,
                             const ParameterStore& weights, std::int64_t step) {
  RankTrainer trainer(plan, world, tokens);
  const ParameterStore& store = trainer.parameters();
  copy_weights(weights, store);
  trainer.forward_backward(step);
  StepGradients gradients;
  if (trainer.groups().coordinates.data != 0) return gradients;  // replicas have the same
  for (const LocalParameter& parameter : store.layout().parameters)
    if (trainer.groups().counts(parameter))
      gradients.parts.push_back(
          {weight_group(parameter.whole.name), parameter.layer, store.view(store.gradients(), parameter).clone()});
  return gradients;
}

constexpr const char* kGroups[] = {"norm", "query", "key",       "value", "projection", "gate",
                                   "up",   "down",  "embedding", "head",  "other"};
constexpr std::int64_t kGroupCount = std::size(kGroups);

/// Squared differences and norms by group and layer, summed over the ranks. Row 0 is for what belongs to no layer.
GradientErrors errors_of(const StepGradients& gradients, const StepGradients& kept, std::int64_t layers,
                         Communicator& world) {
  std::vector<double> sums(static_cast<std::size_t>(2 * kGroupCount * (layers + 1)), 0.0);
  const auto cell = [&](std::int64_t group, std::int64_t layer) {
    return static_cast<std::size_t>(2 * (group * (layers + 1) + layer + 1));
  };
  for (std::size_t i = 0; i < kept.parts.size(); ++i) {
    const StepGradients::Part& part = kept.parts[i];
    const auto group = std::find(std::begin(kGroups), std::end(kGroups), part.group) - std::begin(kGroups);
    const std::size_t at = cell(group, std::max<std::int64_t>(part.layer, -1));
    const at::Tensor wanted = part.gradient.to(at::kDouble);
    sums[at] += (gradients.parts[i].gradient.to(at::kDouble) - wanted).square().sum().item<double>();
    sums[at + 1] += wanted.square().sum().item<double>();
  }
  world.all_reduce(view(sums)).wait();
  GradientErrors errors;
  double all[2] = {0, 0};
  const auto ratio = [](const double(&sum)[2]) { return sum[1] > 0 ? std::sqrt(sum[0] / sum[1]) : 0.0; };
  for (std::int64_t group = 0; group < kGroupCount; ++group) {
    double whole[2] = {0, 0};
    std::vector<double> by_layer;
    for (std::int64_t layer = -1; layer < layers; ++layer) {
      const double one[2] = {sums[cell(group, layer)], sums[cell(group, layer) + 1]};
      for (int i = 0; i < 2; ++i) whole[i] += one[i], all[i] += one[i];
      if (layer >= 0) by_layer.push_back(ratio(one));
    }
    if (whole[1] <= 0) continue;
    errors.by_group[kGroups[group]] = ratio(whole);
    if (std::any_of(by_layer.begin(), by_layer.end(), [](double error) { return error > 0; }))
      errors.by_layer[kGroups[group]] = by_layer;
  }
  errors.all = ratio(all);
  return errors;
}

/// Format in which the plan stores the class on any stage, if it is narrower than compute precision.
std::optional<NumberFormat> narrow_format(const Plan& plan, ActivationClass one) {
  for (int stage = 0; stage < static_cast<int>(plan.parallel.pipeline); ++stage) {
    const ClassPolicy policy = class_policy(plan, one, stage);
    if (!policy.recompute && payload_bits(policy.format) < payload_bits(plan.precision.compute)) return policy.format;
  }
  return std::nullopt;
}

}  // namespace

Plan keeping_all_but(const Plan& plan, std::optional<ActivationClass> stored) {
  Plan kept = plan;
  for (const ActivationClass one : policy_classes()) {
    if (one == stored) continue;
    kept.activations.classes[one] = {false, plan.precision.compute};
    kept.activations.classes_by_stage.erase(one);
  }
  return kept;
}

GradientCheck check_gradients(const Plan& checked, Communicator& world, const TokenStream& tokens,
                              const ParameterStore& weights, std::int64_t step) {
  const Plan plan = with_plain_gradients(checked);
  const std::int64_t layers = plan.model.layers;
  const StepGradients kept = step_gradients(keeping_all_but(plan, std::nullopt), world, tokens, weights, step);
  const auto compare = [&](const Plan& stored) {
    return errors_of(step_gradients(stored, world, tokens, weights, step), kept, layers, world);
  };
  GradientCheck check;
  check.step = step + 1;
  check.plan = compare(plan);
  for (const ActivationClass one : policy_classes()) {
    const auto format = narrow_format(plan, one);
    if (!format) continue;
    StoredClassError row{std::string(name_of(one)), std::string(name_of(*format)), compare(keeping_all_but(plan, one))};
    if (row.errors.all > 0) check.classes.push_back(std::move(row));  // else the model keeps no such tensor
  }
  return check;
}

}  // namespace reckon
