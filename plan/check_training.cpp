// Formats, lists by stage, gradients, optimizer and simulation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "plan/choices.h"
#include "plan/layer_ops.h"
#include "plan/plan_rules.h"
#include "plan/rank_grid.h"

namespace reckon {

namespace {

void check_precision(Rules& rules) {
  const std::map<NumberFormat, FlopsPerSecond>& peak = rules.plan.hardware.device.peak;
  const NumberFormat compute = rules.plan.precision.compute;
  if (!rules.plan.hardware.device.is_cpu && !peak.contains(compute)) {
    std::vector<std::string_view> known;
    for (const auto& [format, rate] : peak) known.push_back(name_of(format));
    rules.broken("precision.compute",
                 fmt::format("the device {} does not compute in {}; legal: {}", rules.plan.hardware.device.name,
                             name_of(compute), fmt::join(known, ", ")));
  }
  if (payload_bits(rules.plan.precision.master) < std::min(32, payload_bits(compute))) {
    rules.broken("precision.master",
                 fmt::format("master weights in {} are narrower than compute in {}; legal: fp32, or {}",
                             name_of(rules.plan.precision.master), name_of(compute), name_of(compute)));
  }
}

void check_bits(Rules& rules, const std::vector<int>& bits) {
  if (!bits.empty() && static_cast<std::int64_t>(bits.size()) != rules.parallel.pipeline) {
    rules.broken(
        "activations.bits_by_stage",
        fmt::format("bits_by_stage has {} entries, but there are {} pipeline stages; legal: {} entries, or auto",
                    bits.size(), rules.parallel.pipeline, rules.parallel.pipeline));
  }
  for (const int width : bits) {
    if ((width >= 2 && width <= 8) || width == 16) continue;
    rules.broken(
        "activations.bits_by_stage",
        fmt::format("bits_by_stage holds {}, for which there is no storage format; legal: 2 to 8, or 16", width));
  }
}

/// Layers of a pipeline rank, all its chunks together (auto: as even as possible, earlier virtual stages get the
/// rest).
std::int64_t layers_of_stage(const Rules& rules, std::int64_t stage) {
  const std::vector<std::int64_t>& given = rules.parallel.layers_per_stage;
  const std::int64_t stages = rules.plan.virtual_stages();
  std::int64_t layers = 0;
  for (std::int64_t i = stage; i < stages; i += rules.parallel.pipeline) {
    const bool listed = i < static_cast<std::int64_t>(given.size());
    layers += listed ? given[static_cast<std::size_t>(i)]
                     : rules.model.layers / stages + (i < rules.model.layers % stages ? 1 : 0);
  }
  return layers;
}

std::int64_t most_layers_of_a_stage(const Rules& rules) {
  std::int64_t most = 0;
  for (std::int64_t stage = 0; stage < rules.parallel.pipeline; ++stage)
    most = std::max(most, layers_of_stage(rules, stage));
  return most;
}

/// Formats in which the plan stores activations below compute precision.
std::set<NumberFormat> storage_formats(const ActivationSpec& activations) {
  std::set<NumberFormat> formats{activations.stored};
  for (const auto& [one, policy] : activations.classes)
    if (!policy.recompute) formats.insert(policy.format);
  for (const auto& [one, policies] : activations.classes_by_stage)
    for (const ClassPolicy& policy : policies)
      if (!policy.recompute) formats.insert(policy.format);
  return formats;
}

void check_blocks(Rules& rules) {
  const ActivationSpec& activations = rules.plan.activations;
  const std::set<NumberFormat> formats = storage_formats(activations);
  if (std::none_of(formats.begin(), formats.end(), is_block_scaled)) return;
  if (activations.block % 8 != 0)
    rules.broken("activations.block",
                 fmt::format("a block of {} elements does not end on a whole byte in every format; legal: multiples of "
                             "8, nearest {} and {}",
                             activations.block, activations.block / 8 * 8, activations.block / 8 * 8 + 8));
  const bool unsigned_scale = activations.scale == ScaleFormat::e8m0 || activations.scale == ScaleFormat::e4m3;
  for (const NumberFormat format : formats)
    if (is_affine(format) && unsigned_scale)
      rules.broken("activations.scale",
                   fmt::format("{} stores each block's minimum in the type of its scale, and {} has no negative "
                               "numbers or too few; legal: bf16, fp32, or a symmetric format",
                               name_of(format), name_of(activations.scale)));
}

void check_classes_by_stage(Rules& rules) {
  for (const auto& [one, policies] : rules.plan.activations.classes_by_stage)
    if (static_cast<std::int64_t>(policies.size()) != rules.parallel.pipeline)
      rules.broken("activations.classes",
                   fmt::format("classes.{} lists {} policies, but there are {} pipeline stages; legal: {} entries, or "
                               "one for all",
                               name_of(one), policies.size(), rules.parallel.pipeline, rules.parallel.pipeline));
}

void check_activations(Rules& rules) {
  const ActivationSpec& activations = rules.plan.activations;
  check_bits(rules, activations.bits_by_stage);
  check_blocks(rules);
  check_classes_by_stage(rules);
  if (!is_block_scaled(activations.stored) && activations.stored != tensor_format(rules.plan))
    rules.broken("activations.stored",
                 fmt::format("stored {} is neither block-scaled nor the format of computed tensors; legal: {}, or a "
                             "block-scaled format",
                             name_of(activations.stored), name_of(tensor_format(rules.plan))));
  const std::vector<std::int64_t>& recomputed = activations.recompute_layers;
  if (recomputed.size() > 1 && static_cast<std::int64_t>(recomputed.size()) != rules.parallel.pipeline) {
    return rules.broken(
        "activations.recompute_layers",
        fmt::format("recompute_layers has {} entries, but there are {} pipeline stages; legal: one entry "
                    "for all, {} entries, or auto",
                    recomputed.size(), rules.parallel.pipeline, rules.parallel.pipeline));
  }
  for (std::size_t stage = 0; stage < recomputed.size(); ++stage) {
    // One entry for all is cut to each stage's layers, so that it must only fit the largest stage.
    const std::int64_t layers = recomputed.size() == 1 ? most_layers_of_a_stage(rules)
                                                       : layers_of_stage(rules, static_cast<std::int64_t>(stage));
    if (recomputed[stage] > layers) {
      rules.broken("activations.recompute_layers",
                   fmt::format("recompute_layers asks for {} layers{}, which has {}; legal: 0 to {}", recomputed[stage],
                               recomputed.size() == 1 ? " of the largest stage" : fmt::format(" of stage {}", stage),
                               layers, layers));
    }
  }
}

void check_gradients(Rules& rules) {
  const GradientSpec& gradients = rules.plan.gradients;
  if (payload_bits(gradients.wire) <= 8 && gradients.reduce == GradientReduce::all_reduce) {
    rules.broken("gradients.reduce", fmt::format("gradients.wire {} cannot be summed on the way (block scales differ); "
                                                 "legal: reduce all_to_all_sum, or wire "
                                                 "bf16 or fp32",
                                                 name_of(gradients.wire)));
  }
}

/// Every node must hold the same number of the ranks that sum, so that each has a partner on every other node.
void check_exchange(Rules& rules) {
  if (rules.plan.gradients.exchange == GradientExchange::flat) return;
  if (rules.plan.gradients.reduce != GradientReduce::all_to_all_sum)
    return rules.broken("gradients.exchange",
                        "exchange hierarchical is about quantized gradients, but reduce is all_reduce; legal: flat, "
                        "or gradients.reduce all_to_all_sum");
  const ParallelSpec& parallel = rules.parallel;
  const std::int64_t replicas = parallel.data * rules.plan.context();
  if (parallel.zero_group > 0 && replicas % parallel.zero_group != 0) return;  // broken elsewhere
  const Group group = parallel.zero == 0 ? Group::gradient : Group::shard;
  if (replicas % parallel.expert != 0 ||
      RankGrid(parallel).lies_evenly(group, std::max(1, rules.plan.hardware.devices_per_node)))
    return;
  rules.broken("gradients.exchange",
               fmt::format("exchange hierarchical needs the same number of a sum's ranks on every node, but {} ranks, "
                           "{} apart, do not divide so on nodes of {} devices; legal: flat",
                           parallel.zero == 0 || parallel.zero_group == 0 ? replicas : parallel.zero_group,
                           parallel.tensor, rules.plan.hardware.devices_per_node));
}

void check_optimizer(Rules& rules) {
  const OptimizerSpec& optimizer = rules.plan.optimizer;
  if (optimizer.beta1 >= 1 || optimizer.beta2 >= 1) {
    rules.broken(optimizer.beta1 >= 1 ? "optimizer.beta1" : "optimizer.beta2",
                 fmt::format("optimizer.beta1 {} and beta2 {} must be below 1; legal: 0 to 0.9999", optimizer.beta1,
                             optimizer.beta2));
  }
  if (optimizer.minimum_learning_rate > optimizer.learning_rate) {
    rules.broken("optimizer.minimum_learning_rate",
                 fmt::format("minimum_learning_rate {} is above learning_rate {}; legal: 0 to {}",
                             optimizer.minimum_learning_rate, optimizer.learning_rate, optimizer.learning_rate));
  }
  if (!rules.plan.sim.slow_ranks.empty() && rules.plan.sim.slow_ranks.rbegin()->first >= rules.plan.world_size()) {
    rules.broken("sim.slow_ranks", fmt::format("slow_ranks names rank {}, but there are {} ranks; legal: 0 to {}",
                                               rules.plan.sim.slow_ranks.rbegin()->first, rules.plan.world_size(),
                                               rules.plan.world_size() - 1));
  }
}

}  // namespace

void check_training(Rules& rules) {
  check_precision(rules);
  check_activations(rules);
  check_gradients(rules);
  check_exchange(rules);
  check_optimizer(rules);
}

}  // namespace reckon
