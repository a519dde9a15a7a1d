// What a careful colleague would say about a legal plan: options without effect, groups that span nodes.
#include <fmt/format.h>

#include "plan/choices.h"
#include "plan/load_plan.h"
#include "plan/reduction_buffers.h"

namespace reckon {

namespace {

using Warnings = std::vector<std::string>;

void about_parallelism(const Plan& plan, Warnings& warnings) {
  const ParallelSpec& parallel = plan.parallel;
  const std::int64_t replicas = parallel.data * plan.context();
  if (parallel.sequence && parallel.tensor == 1) {
    warnings.push_back(
        "parallel.sequence has no effect at tensor 1: there is no tensor group to split the sequence over");
  }
  if (parallel.zero > 0 && replicas == 1) {
    warnings.push_back(fmt::format(
        "parallel.zero {} has no effect at data 1: one replica has nobody to share its states with", parallel.zero));
  }
  if (parallel.zero == 0 && parallel.zero_group != 0) {
    warnings.push_back(
        fmt::format("parallel.zero_group {} has no effect at zero 0: nothing is sharded", parallel.zero_group));
  }
  if (parallel.zero >= 2 && parallel.pipeline > 1) {
    warnings.push_back(
        fmt::format("parallel.zero {} with pipeline {}: gradients are reduced after each of the {} micro-batches "
                    "instead of once a step; "
                    "zero 1 avoids that",
                    parallel.zero, parallel.pipeline, plan.micro_batches()));
  }
  if (parallel.expert_imbalance > 1 && parallel.expert == 1) {
    warnings.push_back("parallel.expert_imbalance has no effect at expert 1: one rank holds all experts");
  }
  if (parallel.schedule == ScheduleKind::interleaved && parallel.pipeline == 1) {
    warnings.push_back(fmt::format("parallel.schedule {} has no effect at pipeline 1: there is one stage",
                                   name_of(parallel.schedule)));
  }
  if (parallel.pipeline > 1 && plan.micro_batches() < parallel.pipeline) {
    warnings.push_back(
        fmt::format("{} micro-batches cannot keep {} pipeline stages busy; raise global_batch or lower micro_batch",
                    plan.micro_batches(), parallel.pipeline));
  }
  const Placement placement = plan.documents.placement;
  if (placement != Placement::automatic && placement != Placement::contiguous && parallel.ring == 1) {
    warnings.push_back(fmt::format("documents.placement {} has no effect at ring 1: each rank sees whole rows",
                                   name_of(plan.documents.placement)));
  }
}

void about_nodes(const Plan& plan, Warnings& warnings) {
  const HardwareSpec& hardware = plan.hardware;
  if (hardware.device.is_cpu) return;
  const std::int64_t node = hardware.devices_per_node, world = plan.world_size();
  const std::int64_t inside = plan.parallel.tensor * plan.parallel.ulysses;
  if (plan.parallel.tensor > node) {
    warnings.push_back(
        fmt::format("tensor {} spans nodes of {} devices: its collectives run over the network in every layer",
                    plan.parallel.tensor, node));
  } else if (inside > node && plan.parallel.ulysses > 1) {
    warnings.push_back(fmt::format(
        "tensor x ulysses = {} spans nodes of {} devices: its all-to-all runs over the network in every layer", inside,
        node));
  }
  if (world > node && world % node != 0) {
    warnings.push_back(
        fmt::format("{} ranks on nodes of {} devices leave {} devices idle", world, node, node - world % node));
  }
}

bool stores_blocks(const ActivationSpec& activations) {
  if (is_block_scaled(activations.stored)) return true;
  for (const auto& [one, policy] : activations.classes) {
    if (!policy.recompute && is_block_scaled(policy.format)) return true;
  }
  for (const auto& [one, policies] : activations.classes_by_stage)
    for (const ClassPolicy& policy : policies)
      if (!policy.recompute && is_block_scaled(policy.format)) return true;
  return false;
}

/// Classes that the model's layers do not have.
bool has_class(const ModelSpec& model, ActivationClass one) {
  switch (one) {
    case ActivationClass::gate:
    case ActivationClass::up: return model.gated_ffn;
    case ActivationClass::ffn_hidden: return !model.gated_ffn;
    case ActivationClass::expert_input: return model.is_moe();
    case ActivationClass::latent: return model.is_mla();
    default: return true;
  }
}

void about_activations(const Plan& plan, Warnings& warnings) {
  const ActivationSpec& activations = plan.activations;
  if (activations.recompute == Recompute::none && !activations.recompute_layers.empty()) {
    warnings.push_back("activations.recompute_layers has no effect at recompute none");
  }
  if (!activations.bits_by_stage.empty() && !stores_blocks(activations)) {
    warnings.push_back(fmt::format(
        "activations.bits_by_stage has no effect: nothing is stored in a block-scaled format (stored is {})",
        name_of(activations.stored)));
  }
  for (const auto& [one, policy] : activations.classes) {
    if (!has_class(plan.model, one) && !plan.method.starts_with("agoq")) {
      warnings.push_back(fmt::format("activations.classes.{} has no effect: layers of {} keep no such tensor",
                                     name_of(one), plan.model.name));
    }
  }
  if (plan.kernels.attention == AttentionKernel::flash &&
      activations.classes.contains(ActivationClass::attention_scores)) {
    warnings.push_back(
        "activations.classes.attention_scores has no effect at kernels.attention flash: scores are never stored");
  }
}

void about_training(const Plan& plan, Warnings& warnings) {
  const std::int64_t replicas = plan.parallel.data * plan.context();
  if (plan.gradients.reduce == GradientReduce::all_to_all_sum && replicas == 1) {
    warnings.push_back("gradients.reduce all_to_all_sum has no effect at data 1: there is nothing to reduce");
  }
  if (plan.gradients.exchange == GradientExchange::hierarchical && !exchanges_by_node(plan)) {
    warnings.push_back(
        "gradients.exchange hierarchical has no effect: the ranks of a sum are all on one node or each on its own");
  }
  if (plan.documents.rows == Rows::padded && plan.documents.source == "single") {
    warnings.push_back("documents.rows padded has no effect with source single: one document fills the row");
  }
  if (plan.model.sliding_window >= plan.batch.sequence_length) {
    warnings.push_back(fmt::format("the model's sliding window of {} tokens has no effect at sequence_length {}",
                                   plan.model.sliding_window, plan.batch.sequence_length));
  }
  if (plan.optimizer.minimum_learning_rate > 0 && plan.optimizer.schedule == LearningRateSchedule::constant) {
    warnings.push_back("optimizer.minimum_learning_rate has no effect at schedule constant");
  }
  if (plan.train.warmup >= plan.train.steps) {
    warnings.push_back(
        fmt::format("train.warmup {} leaves none of the {} steps for timing", plan.train.warmup, plan.train.steps));
  }
}

}  // namespace

std::vector<std::string> plan_warnings(const Plan& plan) {
  Warnings warnings;
  about_parallelism(plan, warnings);
  about_nodes(plan, warnings);
  about_activations(plan, warnings);
  about_training(plan, warnings);
  return warnings;
}

}  // namespace reckon
