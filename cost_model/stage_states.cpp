#include "cost_model/stage_states.h"

#include "plan/optimizer_states.h"
#include "plan/reduction_buffers.h"
#include "plan/stage_sections.h"

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

/// With gradients.bucket_copies and several replicas, the copy of all gradients in compute precision.
Bytes bucket_copies(const Plan& plan, std::int64_t elements) {
  const bool copies = plan.gradients.bucket_copies && plan.parallel.data * plan.context() > 1;
  return copies ? weight_bytes(plan, elements) : Bytes(0);
}

/// kernels.pending_collectives whole [tokens, hidden] tensors: a caching allocator does not give a tensor away before
/// the collective that read it on another stream is over (PyTorch's record_stream), and the host is up to a launch
/// queue ahead of it. None in a pipeline, where the host waits for each neighbour's tensor.
Bytes pending_tensors(const Plan& plan, std::int64_t micro_batch) {
  const bool sequence = plan.parallel.sequence && plan.parallel.tensor > 1 && plan.parallel.pipeline == 1;
  const std::int64_t tokens = micro_batch * plan.batch.sequence_length / plan.context();
  const Bytes tensor = storage_bytes({tensor_format(plan)}, tokens * plan.model.hidden);
  return (sequence ? plan.kernels.pending_collectives : 0) * tensor;
}

/// The last message to the next and to the previous pipeline stage: this project's runtime (CPUs) keeps each until the
/// next one is sent, and has room for it from the start. [micro_batch * tokens, hidden] each.
Bytes held_messages(const Plan& plan, std::int64_t micro_batch, std::int64_t chunks, std::int64_t stage) {
  const ParallelSpec& parallel = plan.parallel;
  if (!plan.hardware.device.is_cpu || parallel.pipeline == 1) return Bytes(0);
  const bool wraps = chunks > 1;  // the last stage sends to the first one's next chunk
  const int directions = (wraps || stage + 1 < parallel.pipeline ? 1 : 0) + (wraps || stage > 0 ? 1 : 0);
  const std::int64_t share = parallel.sequence ? parallel.tensor : 1;
  const std::int64_t tokens = micro_batch * plan.batch.sequence_length / plan.context() / share;
  return directions * storage_bytes({tensor_format(plan)}, tokens * plan.model.hidden);
}

}  // namespace

StateMemory rank_states(const Plan& plan, const SectionElements& elements, const SectionCounts& counts,
                        std::optional<Bytes> moments) {
  StateMemory memory =
      buffer_states(plan, rank_units(plan, elements, counts), reduction_parts(plan), zero_shards(plan.parallel));
  if (moments) memory.optimizer = memory.master + *moments;
  const std::int64_t shards = expert_zero_shards(plan.parallel);
  const StateMemory experts = buffer_states(plan, rank_expert_units(plan, elements, counts), shards, shards);
  memory.parameters += experts.parameters;
  memory.gradients += experts.gradients;
  memory.optimizer += experts.optimizer;
  memory.master += experts.master;
  return memory;
}

StateMemory stage_states(const Plan& plan, std::int64_t stage) {
  const SectionElements elements = section_elements(plan.model, plan.parallel.tensor, plan.parallel.expert);
  return stage_states(plan, elements, section_counts(plan, stage), stage);
}

StateMemory stage_states(const Plan& plan, const SectionElements& elements, const SectionCounts& counts,
                         std::int64_t stage) {
  if (!is_block_scaled(plan.optimizer.states)) return rank_states(plan, elements, counts, std::nullopt);
  return rank_states(plan, elements, counts, moment_bytes(plan, parameter_layout(plan, {.pipeline = stage})));
}

Bytes rank_buffers(const Plan& plan, const SectionElements& elements, const SectionCounts& counts) {
  std::vector<std::int64_t> units;
  std::int64_t held = 0;
  for (const EqualUnits& unit : rank_units(plan, elements, counts)) {
    units.push_back(unit.elements);
    if (!unit.borrowed) held += unit.count * unit.elements;
  }
  return reduction_buffers(plan, units).total() + bucket_copies(plan, held);
}

Bytes stage_buffers(const Plan& plan, std::int64_t stage) {
  const SectionElements elements = section_elements(plan.model, plan.parallel.tensor, plan.parallel.expert);
  return rank_buffers(plan, elements, section_counts(plan, stage)) +
         micro_batch_buffers(plan, plan.batch.micro_batch, plan.parallel.chunks, stage);
}

Bytes micro_batch_buffers(const Plan& plan, std::int64_t micro_batch, std::int64_t chunks, std::int64_t stage) {
  return pending_tensors(plan, micro_batch) + held_messages(plan, micro_batch, chunks, stage);
}

}  // namespace reckon
