#include "cost_model/estimate_op_times.h"

#include <algorithm>
#include <utility>

#include "cost_model/op_cost.h"
#include "cost_model/scaled_times.h"
#include "cost_model/state_cost.h"
#include "cost_model/step_time.h"
#include "cost_model/storage_rates.h"
#include "plan/core_sharing.h"
#include "plan/rank_grid.h"

namespace reckon {

namespace {

Seconds sum(const std::vector<Seconds>& parts) {
  Seconds total(0.0);
  for (const Seconds part : parts) total += part;
  return total;
}

/// Host time of an op's launches. A collective is one more launch, and where pipeline messages cross nodes it stalls
/// the host as the hardware file says.
class HostTime {
 public:
  HostTime(const Plan& plan, const GroupLayouts& layouts) : plan_(plan), layouts_(layouts) {
    const std::int64_t last_stage = plan.world_size() / plan.parallel.pipeline * (plan.parallel.pipeline - 1);
    if (last_stage >= plan.hardware.devices_per_node) stall_ = plan.hardware.time.pipeline_interference;
  }

  Seconds forward(const Op& op) const { return of(op.launches, op.forward_collectives); }
  Seconds backward(const Op& op) const { return of(op.backward_launches, op.backward_collectives); }

 private:
  Seconds of(int launches, const std::vector<CollectiveCall>& collectives) const {
    Seconds time = plan_.hardware.time.launch * launches;
    for (const CollectiveCall& call : collectives) {
      const auto others = static_cast<double>(layouts_[call.group].ranks - 1);
      time += (plan_.hardware.time.launch + stall_ * others) * call.calls;
    }
    return time;
  }

  const Plan& plan_;
  const GroupLayouts& layouts_;
  Seconds stall_{0.0};
};

/// The host launches a section's kernels one after another: where that takes longer than they run, the device waits.
void add_launch_floor(const HostTime& host, SectionTimes& section) {
  Seconds forward(0.0), backward(0.0), forward_device(0.0), backward_device(0.0);
  for (std::size_t i = 0; i < section.ops.size(); ++i) {
    const OpTime& time = section.ops[i];
    forward += host.forward(section.list.ops[i]);
    backward += host.backward(section.list.ops[i]);
    forward_device += time.forward + sum(time.forward_collectives);
    backward_device += time.backward() + sum(time.backward_collectives);
  }
  const Seconds forward_wait = forward - forward_device, backward_wait = backward - backward_device;
  for (std::size_t i = 0; i < section.ops.size(); ++i) {
    const Op& op = section.list.ops[i];
    OpTime& time = section.ops[i];
    if (forward_wait.value > 0.0) time.forward += forward_wait * (host.forward(op) / forward);
    if (backward_wait.value > 0.0) time.input_gradient += backward_wait * (host.backward(op) / backward);
  }
}

/// One correction after a measured run scales the device's work, not the network's.
void apply_factor(SectionTimes& section, double factor) {
  for (OpTime& time : section.ops) {
    time.forward *= factor;
    time.input_gradient *= factor;
    time.weight_gradient *= factor;
  }
}

std::vector<Seconds> pipeline_messages(const Plan& plan) {
  const RankGrid grid(plan.parallel);
  const std::int64_t stages = plan.parallel.pipeline;
  std::vector<Seconds> edges(static_cast<std::size_t>(stages), Seconds(0.0));
  if (stages == 1) return edges;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    Coordinates from, to;
    from.pipeline = stage;
    to.pipeline = (stage + 1) % stages;
    const bool same_node =
        grid.rank(from) / plan.hardware.devices_per_node == grid.rank(to) / plan.hardware.devices_per_node;
    edges[static_cast<std::size_t>(stage)] = message_cost(plan.hardware, same_node, stage_message(plan).bytes).seconds;
  }
  return edges;
}

}  // namespace

SectionTimes section_op_times(const Plan& plan, const GroupLayouts& layouts, OpList list, const AttentionWork& work) {
  SectionTimes times;
  times.list = std::move(list);
  times.work = work;
  times.ops.reserve(times.list.ops.size());
  for (const Op& op : times.list.ops) times.ops.push_back(op_time(plan, layouts, op));
  add_launch_floor(HostTime(plan, layouts), times);
  apply_factor(times, plan.hardware.time.global_factor);
  return times;
}

OpTimes estimate_op_times(const Plan& plan) {
  return estimate_op_times(plan, planned_documents(plan));
}

OpTimes estimate_op_times(const Plan& plan, const DocumentWork& documents) {
  OpTimes times = estimate_op_times(plan, slowest_attention(documents));
  times.ring = documents.ring;
  return times;
}

namespace {

/// As if no ranks shared cores.
OpTimes unshared_op_times(const Plan& plan, const AttentionWork& work) {
  const GroupLayouts layouts(plan);
  const SectionWeights sections = section_weights(plan);
  OpTimes times;
  for (const Section kind : {Section::embedding, Section::dense_layer, Section::moe_layer, Section::head}) {
    if (!has_section(plan.model, kind)) continue;
    const WeightElements weights = sections[static_cast<std::size_t>(kind)];
    SectionTimes& section = times.of(kind) = section_op_times(plan, layouts, section_ops(plan, kind, work), work);
    if (plan.parallel.zero >= 3) section.parameter_gather = calls_time(plan, layouts, gather_calls(plan, weights));
    if (plan.parallel.zero >= 2) section.gradient_reduce = gradient_reduce_time(plan, layouts, weights);
  }

  times.pipeline_send = pipeline_messages(plan);
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    const WeightElements weights = stage_weights(sections, stage_sections(plan, stage));
    const Pieces buckets = gradient_buckets(plan, weights);
    times.optimizer.push_back(optimizer_time(plan, weights) * plan.hardware.time.global_factor);
    times.gradient_reduce.push_back(gradient_reduce_time(plan, layouts, weights, buckets));
    times.reduce_calls.push_back(buckets.shared + buckets.experts);
    const bool gathers = plan.parallel.zero == 1 || plan.parallel.zero == 2;
    times.parameter_gather.push_back(gathers ? calls_time(plan, layouts, gather_calls(plan, weights, buckets))
                                             : Seconds(0.0));
  }
  times.tied_table_reduce = calls_time(plan, layouts, tied_table_calls(plan));
  times.storage = storage_rates(plan);
  return times;
}

}  // namespace

OpTimes estimate_op_times(const Plan& plan, const AttentionWork& work) {
  OpTimes times = unshared_op_times(plan, work);
  if (!takes_turns(plan)) return times;
  const double sharing = core_sharing(plan, busy_ranks(plan, times));
  if (sharing <= 1.0) return times;
  // A rank of a ring that is done leaves its core to the others, so that unequal shares count less.
  return scaled(std::move(times), {sharing, std::max(1.0, sharing / std::max(1.0, work.imbalance))});
}

}  // namespace reckon
