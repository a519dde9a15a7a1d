// Fills what a plan leaves to the tool, one choice per function.
#include <algorithm>

#include "cost_model/budget_solver.h"
#include "cost_model/cpu_node.h"
#include "cost_model/memory.h"
#include "cost_model/predict.h"
#include "plan/layer_ops.h"
#include "plan/pipeline_schedule.h"

namespace reckon {

namespace {

/// Stays auto where devices would be idle: `nodes` written in a plan means that all of their devices are used.
void resolve_nodes(Plan& plan) {
  HardwareSpec& hardware = plan.hardware;
  if (plan.nodes == 0) make_room_for_ranks(hardware, plan.world_size());
  const std::int64_t devices = hardware.devices_per_node;
  if (plan.nodes == 0 && devices > 0 && plan.world_size() % devices == 0) plan.nodes = plan.world_size() / devices;
}

void resolve_shards(Plan& plan) {
  if (plan.parallel.zero > 0 && plan.parallel.zero_group == 0)
    plan.parallel.zero_group = plan.parallel.data * plan.context();
}

/// Unscaled storage means "as computed": bf16, the default, is fp32 where the plan computes in fp32.
void resolve_storage(Plan& plan) {
  if (!is_block_scaled(plan.activations.stored)) plan.activations.stored = tensor_format(plan);
  if (plan.activations.bits_by_stage.empty()) plan.activations.bits_by_stage = automatic_bits(plan);
}

void resolve_recomputation(Plan& plan) {
  if (plan.activations.recompute_layers.empty()) plan.activations.recompute_layers = fewest_recomputed_layers(plan);
}

}  // namespace

Plan resolve(const Plan& plan) {
  Plan resolved = plan;
  resolve_nodes(resolved);
  resolve_shards(resolved);
  resolved.documents.placement = planned_placement(resolved);
  resolved.parallel.layers_per_stage = layers_per_virtual_stage(resolved);
  resolve_storage(resolved);
  if (resolved.activations.method == ActivationMethod::optimal) return solve_budget(resolved, false).plan;
  resolve_recomputation(resolved);
  return resolved;
}

}  // namespace reckon
