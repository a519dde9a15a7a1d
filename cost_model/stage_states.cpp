#include "cost_model/stage_states.h"

#include "plan/optimizer_states.h"
#include "plan/reduction_buffers.h"
#include "plan/stage_units.h"

namespace reckon {

namespace {

/// Units of one flat buffer, divided into `parts` for storage and `shards` by ZeRO.
StateMemory buffer_states(const Plan& plan, const std::vector<EqualUnits>& units, std::int64_t parts,
                          std::int64_t shards) {
  const int zero = shards > 1 ? plan.parallel.zero : 0;
  const Storage stored = with_fixed_blocks({plan.gradients.stored, plan.activations.block, plan.activations.scale});
  StateMemory memory;
  std::int64_t updated = 0;
  for (const EqualUnits& unit : units) {
    if (unit.borrowed) continue;
    const std::int64_t shard = unit.elements / shards, held_parts = zero >= 2 ? parts / shards : parts;
    memory.parameters += unit.count * storage_bytes({tensor_format(plan)}, zero >= 3 ? shard : unit.elements);
    memory.gradients += is_block_scaled(stored.format)
                            ? unit.count * held_parts * storage_bytes(stored, unit.elements / parts)
                            : unit.count * storage_bytes(stored, zero >= 2 ? shard : unit.elements);
    updated += unit.count * shard;
  }
  if (tensor_format(plan) != plan.precision.master) memory.master = storage_bytes({plan.precision.master}, updated);
  memory.optimizer = memory.master;
  if (plan.optimizer.kind == OptimizerKind::adamw)
    memory.optimizer += 2 * storage_bytes({plan.optimizer.states, plan.activations.block, ScaleFormat::fp32}, updated);
  return memory;
}

}  // namespace

StateMemory stage_states(const Plan& plan, std::int64_t stage) {
  StateMemory memory = buffer_states(plan, stage_units(plan, stage), reduction_parts(plan), zero_shards(plan.parallel));
  if (is_block_scaled(plan.optimizer.states))  // small tensors stay wide
    memory.optimizer = memory.master + moment_bytes(plan, parameter_layout(plan, {.pipeline = stage}));
  const std::int64_t shards = expert_zero_shards(plan.parallel);
  const StateMemory experts = buffer_states(plan, stage_expert_units(plan, stage), shards, shards);
  memory.parameters += experts.parameters;
  memory.gradients += experts.gradients;
  memory.optimizer += experts.optimizer;
  memory.master += experts.master;
  return memory;
}

Bytes stage_buffers(const Plan& plan, std::int64_t stage) {
  std::vector<std::int64_t> units;
  std::int64_t held = 0;
  for (const EqualUnits& unit : stage_units(plan, stage)) {
    units.push_back(unit.elements);
    if (!unit.borrowed) held += unit.count * unit.elements;
  }
  return reduction_buffers(plan, units).total() + bucket_copies(plan, held) + pending_tensors(plan) +
         held_messages(plan, plan.batch.micro_batch, stage);
}

}  // namespace reckon
