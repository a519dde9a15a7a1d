#include "plan/state_calls.h"

#include <algorithm>
#include <cmath>

#include "plan/layer_ops.h"
#include "plan/parameter_layout.h"
#include "plan/rank_grid.h"
#include "plan/reduction_buffers.h"

namespace reckon {

namespace {

double bytes_per_gradient(const Plan& plan) {
  constexpr std::int64_t kSample = 1 << 16;
  const Storage wire = with_fixed_blocks({plan.gradients.wire, plan.activations.block, plan.activations.scale});
  return static_cast<double>(storage_bytes(wire, kSample).value) / static_cast<double>(kSample);
}

bool exchanges(const Plan& plan) {
  return plan.gradients.reduce == GradientReduce::all_to_all_sum;
}

/// Appends `pieces` equal calls that move `bytes` together.
void append(std::vector<CollectiveCall>& calls, const RankGrid& grid, Collective collective, Group group, double bytes,
            std::int64_t pieces) {
  if (bytes <= 0.0 || grid.size(group) <= 1) return;
  const std::int64_t count = std::max<std::int64_t>(1, pieces);
  const Bytes piece(std::llround(bytes / static_cast<double>(count)));
  calls.push_back({collective, group, piece, static_cast<int>(count)});
}

}  // namespace

Pieces gradient_buckets(const Plan& plan, WeightElements weights) {
  const auto bucket = static_cast<double>(std::max<std::int64_t>(1, plan.gradients.bucket.value));
  const auto pieces = [&](std::int64_t elements) {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(elements) * bytes_per_gradient(plan) / bucket));
  };
  return {pieces(weights.shared), pieces(weights.experts)};
}

std::vector<CollectiveCall> reduction_calls(const Plan& plan, WeightElements weights, Pieces pieces) {
  const RankGrid grid(plan);
  const bool by_node = exchanges_by_node(plan);
  const double shared = static_cast<double>(weights.shared) * bytes_per_gradient(plan);
  const double experts = static_cast<double>(weights.experts) * bytes_per_gradient(plan);
  std::vector<CollectiveCall> calls;
  const auto both = [&](Collective collective, Group group) {
    if (by_node) {
      append(calls, grid, collective, Group::gradient_inside, shared, pieces.shared);
      append(calls, grid, collective, Group::gradient_across,
             shared / static_cast<double>(grid.size(Group::gradient_inside)), pieces.shared);
    } else {
      append(calls, grid, collective, group, shared, pieces.shared);
    }
    append(calls, grid, collective, Group::expert_gradient, experts, pieces.experts);
  };
  if (plan.parallel.zero == 0) {
    both(exchanges(plan) ? Collective::all_to_all : Collective::all_reduce, Group::gradient);
    if (exchanges(plan)) both(Collective::all_gather, Group::gradient);
    return calls;
  }
  both(exchanges(plan) ? Collective::all_to_all : Collective::reduce_scatter, Group::shard);
  append(calls, grid, Collective::all_reduce, Group::replica, shared / static_cast<double>(grid.size(Group::shard)),
         pieces.shared);
  return calls;
}

std::vector<CollectiveCall> gather_calls(const Plan& plan, WeightElements weights, Pieces pieces) {
  const RankGrid grid(plan.parallel);
  const double width = payload_bits(tensor_format(plan)) / 8.0;
  std::vector<CollectiveCall> calls;
  append(calls, grid, Collective::all_gather, Group::shard, static_cast<double>(weights.shared) * width, pieces.shared);
  append(calls, grid, Collective::all_gather, Group::expert_gradient, static_cast<double>(weights.experts) * width,
         pieces.experts);
  return calls;
}

std::vector<CollectiveCall> tied_table_calls(const Plan& plan) {
  if (plan.parallel.pipeline == 1 || !plan.model.tied_head) return {};
  std::int64_t table = local_vocabulary(plan.model, plan.parallel.tensor) * plan.model.hidden;
  if (divides_by_section(plan)) table = round_up(table, reduction_parts(plan)) / zero_shards(plan.parallel);
  return {{Collective::all_reduce, Group::embedding, Bytes(4 * table), 1}};
}

CollectiveCall stage_message(const Plan& plan) {
  const std::int64_t tokens = plan.batch.micro_batch * plan.batch.sequence_length / plan.context();
  const std::int64_t share = plan.parallel.sequence ? plan.parallel.tensor : 1;
  const NumberFormat format = tensor_format(plan);
  const Bytes bytes(tokens * plan.model.hidden / share * payload_bits(format) / 8);
  return {Collective::send_receive, Group::pipeline, bytes, 1};
}

std::string_view reduction_component(const Plan& plan) {
  if (plan.parallel.zero >= 1) return "gradient.reduce_scatter";
  return exchanges(plan) ? "gradient.all_to_all" : "gradient.all_reduce";
}

}  // namespace reckon
