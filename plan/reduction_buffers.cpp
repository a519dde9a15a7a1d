#include "plan/reduction_buffers.h"

#include <algorithm>

#include "plan/rank_grid.h"

namespace reckon {

ReductionPath reduction_path(const Plan& plan, std::int64_t elements) {
  if (plan.gradients.reduce == GradientReduce::all_to_all_sum)
    return 4 * elements < plan.gradients.plain_below.value ? ReductionPath::in_place : ReductionPath::exchanged;
  return plan.gradients.wire == NumberFormat::fp32 ? ReductionPath::in_place : ReductionPath::converted;
}

NumberFormat plain_wire(const Plan& plan) {
  return plan.gradients.reduce == GradientReduce::all_to_all_sum ? NumberFormat::fp32 : plan.gradients.wire;
}

bool exchanges_by_node(const Plan& plan) {
  if (plan.gradients.reduce != GradientReduce::all_to_all_sum || plan.gradients.exchange == GradientExchange::flat)
    return false;
  const RankGrid grid(plan);
  return grid.size(Group::gradient_inside) > 1 && grid.size(Group::gradient_across) > 1;
}

Storage gradient_wire(const Plan& plan) {
  return with_fixed_blocks({plan.gradients.wire, plan.activations.block, plan.activations.scale});
}

void ReductionBuffers::cover(const Plan& plan, std::int64_t ranks, std::int64_t elements) {
  if (ranks <= 1) return;
  switch (reduction_path(plan, elements)) {
    case ReductionPath::in_place: return;
    case ReductionPath::converted:
      wire_bytes = std::max(wire_bytes, storage_bytes({plain_wire(plan)}, elements).value);
      return;
    case ReductionPath::exchanged:
      wire_bytes = std::max(wire_bytes, 2 * ranks * storage_bytes(gradient_wire(plan), elements / ranks).value);
      sum_elements = std::max(sum_elements, elements / ranks);
      return;
  }
}

ReductionBuffers reduction_buffers(const Plan& plan, const std::vector<std::int64_t>& units) {
  const RankGrid grid(plan.parallel);
  const bool zero = plan.parallel.zero > 0;
  ReductionBuffers buffers;
  for (const std::int64_t unit : units) {
    buffers.cover(plan, grid.size(zero ? Group::shard : Group::gradient), unit);
    if (zero) buffers.cover(plan, grid.size(Group::replica), unit / zero_shards(plan.parallel));
  }
  return buffers;
}

}  // namespace reckon
