#include "cost_model/state_memory.h"

#include <algorithm>

#include "plan/layer_ops.h"
#include "plan/reduction_buffers.h"

namespace reckon {

namespace {

std::int64_t padded(std::int64_t elements, std::int64_t shards) {
  return (elements + shards - 1) / shards * shards;
}

Bytes master_bytes(const Plan& plan, std::int64_t elements) {
  const bool separate = tensor_format(plan) != plan.precision.master;
  return separate ? storage_bytes({plan.precision.master}, elements) : Bytes(0);
}

Bytes moment_bytes(const Plan& plan, std::int64_t elements) {
  if (plan.optimizer.kind != OptimizerKind::adamw) return Bytes(0);
  return 2 * storage_bytes({plan.optimizer.states, plan.activations.block, ScaleFormat::fp32}, elements);
}

StateMemory buffer_memory(const Plan& plan, std::int64_t elements, std::int64_t shards) {
  if (elements == 0) return {};
  const std::int64_t whole = padded(elements, shards), shard = whole / shards;
  const int zero = plan.parallel.zero;
  const std::int64_t updated = zero >= 1 ? shard : whole;
  const Bytes master = master_bytes(plan, updated);
  return {weight_bytes(plan, zero >= 3 ? shard : whole), gradient_bytes(plan, zero >= 2 ? shard : whole),
          master + moment_bytes(plan, updated), master};
}

}  // namespace

StateMemory state_memory(const Plan& plan, WeightElements weights) {
  StateMemory sum = buffer_memory(plan, weights.shared, zero_shards(plan.parallel));
  const StateMemory experts =
      weights.experts > 0 ? buffer_memory(plan, weights.experts, expert_zero_shards(plan.parallel)) : StateMemory{};
  sum.parameters += experts.parameters;
  sum.gradients += experts.gradients;
  sum.optimizer += experts.optimizer;
  sum.master += experts.master;
  return sum;
}

Bytes bucket_copies(const Plan& plan, std::int64_t elements) {
  const bool copies = plan.gradients.bucket_copies && plan.parallel.data * plan.context() > 1;
  return copies ? weight_bytes(plan, elements) : Bytes(0);
}

Bytes pending_tensors(const Plan& plan) {
  const bool sequence = plan.parallel.sequence && plan.parallel.tensor > 1 && plan.parallel.pipeline == 1;
  const std::int64_t tokens = plan.batch.micro_batch * plan.batch.sequence_length / plan.context();
  const Bytes tensor = storage_bytes({tensor_format(plan)}, tokens * plan.model.hidden);
  return (sequence ? plan.kernels.pending_collectives : 0) * tensor;
}

Bytes communication_buffers(const Plan& plan, std::int64_t elements) {
  const std::int64_t piece = plan.gradients.bucket.value * 8 / payload_bits(plan.gradients.wire);
  return reduction_buffers(plan, {std::min(elements, piece)}).total() + bucket_copies(plan, elements) +
         pending_tensors(plan);
}

Bytes held_messages(const Plan& plan, std::int64_t micro_batch, std::int64_t stage) {
  const ParallelSpec& parallel = plan.parallel;
  if (!plan.hardware.device.is_cpu || parallel.pipeline == 1) return Bytes(0);
  const bool wraps = parallel.chunks > 1;  // the last stage sends to the first one's next chunk
  const int directions = (wraps || stage + 1 < parallel.pipeline ? 1 : 0) + (wraps || stage > 0 ? 1 : 0);
  const std::int64_t share = parallel.sequence ? parallel.tensor : 1;
  const std::int64_t tokens = micro_batch * plan.batch.sequence_length / plan.context() / share;
  return directions * storage_bytes({tensor_format(plan)}, tokens * plan.model.hidden);
}

}  // namespace reckon
