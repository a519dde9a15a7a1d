#include "cost_model/state_cost.h"

#include <algorithm>
#include <cmath>

#include "plan/pipeline_schedule.h"

namespace reckon {

namespace {

double bytes_per_element(NumberFormat format, int block, ScaleFormat scale) {
  constexpr std::int64_t kSample = 1 << 16;
  const Storage storage = with_fixed_blocks({format, block, scale});
  return static_cast<double>(storage_bytes(storage, kSample).value) / static_cast<double>(kSample);
}

double gradient_wire_bytes(const Plan& plan) {
  return bytes_per_element(plan.gradients.wire, plan.activations.block, plan.activations.scale);
}

/// What weights are gathered and computed in: 16 bits for narrower compute.
double weight_bytes(const Plan& plan) {
  return payload_bits(tensor_format(plan)) / 8.0;
}

/// Of the optimizer's own copy; 0 where it updates the weights themselves.
double master_bytes(const Plan& plan) {
  return plan.precision.master == tensor_format(plan) ? 0.0 : payload_bits(plan.precision.master) / 8.0;
}

Bytes whole(double bytes) {
  return Bytes(static_cast<std::int64_t>(std::llround(bytes)));
}

/// `pieces` equal calls that move `bytes` together.
Seconds pieced(const Plan& plan, Collective collective, const GroupLayout& layout, double bytes, std::int64_t pieces) {
  if (bytes <= 0.0) return Seconds(0.0);
  const auto count = static_cast<double>(std::max<std::int64_t>(1, pieces));
  return collective_cost(plan.hardware, collective, layout, whole(bytes / count)).seconds * count;
}

std::int64_t pieces_of(const Plan& plan, double bytes) {
  const auto bucket = static_cast<double>(std::max<std::int64_t>(1, plan.gradients.bucket.value));
  return static_cast<std::int64_t>(std::ceil(bytes / bucket));
}

/// Quantize, dequantize and fp32 sum around an 8-bit exchange: 6 bytes a weight, twice.
Seconds exchange_passes(const Plan& plan, double elements) {
  const HardwareSpec& hardware = plan.hardware;
  return memory_bound_cost(hardware, hardware.time.memory_bound, 12.0 * elements).seconds;
}

/// One set of weights over the ranks that hold the same ones.
Seconds reduce_over(const Plan& plan, const GroupLayouts& layouts, Group same, double elements) {
  if (elements <= 0.0 || layouts[same].ranks <= 1) return Seconds(0.0);
  const double bytes = elements * gradient_wire_bytes(plan);
  const std::int64_t pieces = pieces_of(plan, bytes);
  const bool exchange = plan.gradients.reduce == GradientReduce::all_to_all_sum;
  Seconds seconds = exchange ? exchange_passes(plan, elements) : Seconds(0.0);
  if (plan.parallel.zero == 0) {
    if (!exchange) return pieced(plan, Collective::all_reduce, layouts[same], bytes, pieces);
    return seconds + pieced(plan, Collective::all_to_all, layouts[same], bytes, pieces) +
           pieced(plan, Collective::all_gather, layouts[same], bytes, pieces);
  }
  const GroupLayout& shard = same == Group::gradient ? layouts[Group::shard] : layouts[same];
  seconds += pieced(plan, exchange ? Collective::all_to_all : Collective::reduce_scatter, shard, bytes, pieces);
  if (same == Group::gradient && layouts[Group::replica].ranks > 1)
    seconds +=
        pieced(plan, Collective::all_reduce, layouts[Group::replica], bytes / static_cast<double>(shard.ranks), pieces);
  return seconds;
}

}  // namespace

LocalWeights stage_weights(const Plan& plan, const SectionElements& elements, std::int64_t stage) {
  const std::vector<std::int64_t> layers = layers_per_virtual_stage(plan);
  LocalWeights sum;
  std::int64_t first = 0;
  for (std::int64_t virtual_stage = 0; virtual_stage < plan.virtual_stages(); ++virtual_stage) {
    const std::int64_t end = first + layers[static_cast<std::size_t>(virtual_stage)];
    const bool here = virtual_stage % plan.parallel.pipeline == stage;
    for (std::int64_t layer = first; here && layer < end; ++layer) {
      const bool moe = plan.model.layer_is_moe(layer);
      sum.dense += static_cast<double>(moe ? elements.moe_layer : elements.dense_layer);
      sum.expert += static_cast<double>(moe ? elements.layer_experts : 0);
    }
    first = end;
  }
  const bool is_first = stage == 0, is_last = stage == plan.parallel.pipeline - 1;
  if (is_first) sum.dense += static_cast<double>(elements.embedding);
  if (is_last) sum.dense += static_cast<double>(elements.head);
  if (is_last && !is_first) sum.dense += static_cast<double>(elements.tied_table);
  return sum;
}

Seconds gradient_reduce_time(const Plan& plan, const GroupLayouts& layouts, LocalWeights weights) {
  return reduce_over(plan, layouts, Group::gradient, weights.dense) +
         reduce_over(plan, layouts, Group::expert_gradient, weights.expert);
}

std::int64_t gradient_buckets(const Plan& plan, LocalWeights weights) {
  const double wire = gradient_wire_bytes(plan);
  return pieces_of(plan, weights.dense * wire) + pieces_of(plan, weights.expert * wire);
}

Seconds parameter_gather_time(const Plan& plan, const GroupLayouts& layouts, LocalWeights weights,
                              std::int64_t pieces) {
  const double bytes = weight_bytes(plan);
  return pieced(plan, Collective::all_gather, layouts[Group::shard], weights.dense * bytes, pieces) +
         pieced(plan, Collective::all_gather, layouts[Group::expert_gradient], weights.expert * bytes, pieces);
}

Bytes tied_table_bytes(const Plan& plan, const SectionElements& elements) {
  if (plan.parallel.pipeline == 1) return Bytes(0);
  return storage_bytes({plan.gradients.wire, plan.activations.block, plan.activations.scale}, elements.tied_table);
}

Seconds tied_table_time(const Plan& plan, const GroupLayouts& layouts, const SectionElements& elements) {
  const Bytes bytes = tied_table_bytes(plan, elements);
  if (bytes.value == 0) return Seconds(0.0);
  return collective_cost(plan.hardware, Collective::all_reduce, layouts[Group::embedding], bytes).seconds;
}

Seconds optimizer_time(const Plan& plan, const GroupLayouts& layouts, LocalWeights weights) {
  const HardwareSpec& hardware = plan.hardware;
  const double expert_shards =
      plan.parallel.zero == 0 ? 1.0 : static_cast<double>(layouts[Group::expert_gradient].ranks);
  const double updated =
      weights.dense / static_cast<double>(zero_shards(plan.parallel)) + weights.expert / expert_shards;
  const double gradient = bytes_per_element(plan.gradients.stored, plan.activations.block, plan.activations.scale);
  const double state = plan.optimizer.kind == OptimizerKind::adamw
                           ? 2.0 * bytes_per_element(plan.optimizer.states, plan.activations.block, ScaleFormat::fp32)
                           : 0.0;
  const double master = master_bytes(plan);
  // Norm reads the gradient; the update reads gradient, master and states and writes master, states and weight; the
  // gradient is scaled in the update and cleared for the next step.
  const double clip = plan.optimizer.clip_gradient_norm > 0.0 ? gradient : 0.0;
  const double update = gradient + 2.0 * (master + state) + (master == 0.0 ? 2.0 : 1.0) * weight_bytes(plan);
  const double clear = gradient * weights.total();
  return memory_bound_cost(hardware, hardware.time.optimizer, updated * (clip + update) + clear).seconds;
}

}  // namespace reckon
