#include "cost_model/state_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/core_sharing.h"
#include "plan/layer_ops.h"
#include "plan/parameter_layout.h"
#include "plan/reduction_buffers.h"

namespace reckon {

namespace {

constexpr double kSampledBytes = 1 << 20;  // that an update's sample is for

double bytes_per_element(NumberFormat format, int block, ScaleFormat scale) {
  constexpr std::int64_t kSample = 1 << 16;
  const Storage storage = with_fixed_blocks({format, block, scale});
  return static_cast<double>(storage_bytes(storage, kSample).value) / static_cast<double>(kSample);
}

/// What weights are gathered and computed in: 16 bits for narrower compute.
double weight_width(const Plan& plan) {
  return payload_bits(tensor_format(plan)) / 8.0;
}

/// Of the optimizer's own copy; 0 where it updates the weights themselves.
double master_width(const Plan& plan) {
  return plan.precision.master == tensor_format(plan) ? 0.0 : payload_bits(plan.precision.master) / 8.0;
}

/// Quantize, dequantize and fp32 sum around an 8-bit exchange: 6 bytes a weight, twice; and twice more of what goes on
/// between nodes.
Seconds exchange_passes(const Plan& plan, double elements, double between_nodes) {
  const HardwareSpec& hardware = plan.hardware;
  return memory_bound_cost(hardware, hardware.time.memory_bound, 12.0 * (elements + between_nodes)).seconds;
}

/// That of all updates, or of this kind where it was measured.
OpFit update_fit(const Plan& plan) {
  const HardwareSpec& hardware = plan.hardware;
  const std::string kind = hardware.time.op_samples.empty() ? std::string() : narrow_update(plan);
  if (kind.empty()) return hardware.time.optimizer;
  const std::string shape = beside_others(kind, ranks_at_once(plan));
  for (const OpSample& sample : hardware.time.op_samples)
    if (sample.op == "optimizer" && sample.shape == shape && sample.format == plan.precision.compute)
      return {0.0, sample.forward.value * hardware.device.memory_bandwidth.value / kSampledBytes, Seconds(0.0),
              hardware.time.optimizer.relative_error, Provenance::calibrated};
  return hardware.time.optimizer;
}

}  // namespace

std::string narrow_update(const Plan& plan) {
  if (!is_block_scaled(plan.optimizer.states) && !is_block_scaled(plan.gradients.stored)) return {};
  return fmt::format("{} moments, {} gradients", name_of(plan.optimizer.states), name_of(plan.gradients.stored));
}

OpSample update_sample(const Plan& plan, Seconds seconds, double bytes) {
  return {"optimizer", beside_others(narrow_update(plan), ranks_at_once(plan)), seconds * (kSampledBytes / bytes),
          Seconds(0.0), plan.precision.compute};
}

Seconds calls_time(const Plan& plan, const GroupLayouts& layouts, const std::vector<CollectiveCall>& calls) {
  Seconds sum(0.0);
  for (const CollectiveCall& call : calls)
    sum += collective_cost(plan.hardware, call.collective, layouts[call.group], call.bytes).seconds * call.calls;
  return sum;
}

Seconds gradient_reduce_time(const Plan& plan, const GroupLayouts& layouts, WeightElements weights, Pieces pieces) {
  Seconds sum = calls_time(plan, layouts, reduction_calls(plan, weights, pieces));
  if (plan.gradients.reduce != GradientReduce::all_to_all_sum) return sum;
  const auto shared = static_cast<double>(weights.shared);
  const bool by_node = exchanges_by_node(plan);
  const double between_nodes = by_node ? shared / static_cast<double>(layouts[Group::gradient_inside].ranks) : 0.0;
  if (layouts[Group::gradient].ranks > 1) sum += exchange_passes(plan, shared, between_nodes);
  if (layouts[Group::expert_gradient].ranks > 1)
    sum += exchange_passes(plan, static_cast<double>(weights.experts), 0.0);
  return sum;
}

Seconds optimizer_time(const Plan& plan, WeightElements weights) {
  const double updated = static_cast<double>(weights.shared) / static_cast<double>(zero_shards(plan.parallel)) +
                         static_cast<double>(weights.experts) / static_cast<double>(expert_zero_shards(plan.parallel));
  const double gradient = bytes_per_element(plan.gradients.stored, plan.activations.block, plan.activations.scale);
  const double state = plan.optimizer.kind == OptimizerKind::adamw
                           ? 2.0 * bytes_per_element(plan.optimizer.states, plan.activations.block, ScaleFormat::fp32)
                           : 0.0;
  const double master = master_width(plan);
  // Norm reads the gradient; the update reads gradient, master and states and writes master, states and weight; the
  // gradient is scaled in the update and cleared for the next step.
  const double clip = plan.optimizer.clip_gradient_norm > 0.0 ? gradient : 0.0;
  const double update = gradient + 2.0 * (master + state) + (master == 0.0 ? 2.0 : 1.0) * weight_width(plan);
  const double clear = gradient * static_cast<double>(weights.total());
  return memory_bound_cost(plan.hardware, update_fit(plan), updated * (clip + update) + clear).seconds;
}

}  // namespace reckon
