#include "cost_model/estimate_op_times.h"

#include <algorithm>
#include <utility>

#include "cost_model/op_cost.h"
#include "cost_model/scaled_times.h"
#include "cost_model/state_cost.h"
#include "plan/core_sharing.h"
#include "plan/parameter_layout.h"
#include "plan/rank_grid.h"
#include "plan/step_documents.h"

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

SectionTimes section_times(const Plan& plan, const GroupLayouts& layouts, Section section, const AttentionWork& work,
                           LocalWeights weights) {
  SectionTimes times;
  times.list = section_ops(plan, section, work);
  times.work = work;
  for (const Op& op : times.list.ops) times.ops.push_back(op_time(plan, layouts, op));
  add_launch_floor(HostTime(plan, layouts), times);
  apply_factor(times, plan.hardware.time.global_factor);
  if (plan.parallel.zero >= 3) times.parameter_gather = parameter_gather_time(plan, layouts, weights, 1);
  if (plan.parallel.zero >= 2) times.gradient_reduce = gradient_reduce_time(plan, layouts, weights);
  return times;
}

bool has_layer(const ModelSpec& model, bool moe) {
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (model.layer_is_moe(layer) == moe) return true;
  return false;
}

/// Tokens of one micro-batch that a rank passes on: its share of the row, divided once more under sequence parallelism.
Bytes message_bytes(const Plan& plan) {
  const std::int64_t tokens = plan.batch.micro_batch * plan.batch.sequence_length / plan.context();
  const std::int64_t share = plan.parallel.sequence ? plan.parallel.tensor : 1;
  const std::int64_t width = payload_bits(tensor_format(plan)) / 8;
  return Bytes(tokens * plan.model.hidden * width / share);
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
    edges[static_cast<std::size_t>(stage)] = message_cost(plan.hardware, same_node, message_bytes(plan)).seconds;
  }
  return edges;
}

}  // namespace

OpTimes estimate_op_times(const Plan& plan) {
  return estimate_op_times(plan, planned_attention_work(plan));
}

OpTimes estimate_op_times(const Plan& plan, const AttentionWork& work) {
  const GroupLayouts layouts(plan);
  const SectionElements elements = section_elements(plan.model, plan.parallel.tensor, plan.parallel.expert);
  OpTimes times;
  const auto section = [&](Section kind, std::int64_t dense, std::int64_t expert) {
    return section_times(plan, layouts, kind, work, {static_cast<double>(dense), static_cast<double>(expert)});
  };
  times.embedding = section(Section::embedding, elements.embedding, 0);
  if (has_layer(plan.model, false)) times.dense_layer = section(Section::dense_layer, elements.dense_layer, 0);
  if (has_layer(plan.model, true))
    times.moe_layer = section(Section::moe_layer, elements.moe_layer, elements.layer_experts);
  times.head = section(Section::head, elements.head + elements.tied_table, 0);

  times.pipeline_send = pipeline_messages(plan);
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    const LocalWeights weights = stage_weights(plan, elements, stage);
    const std::int64_t buckets = gradient_buckets(plan, weights);
    times.optimizer.push_back(optimizer_time(plan, layouts, weights) * plan.hardware.time.global_factor);
    times.gradient_reduce.push_back(gradient_reduce_time(plan, layouts, weights));
    times.reduce_calls.push_back(buckets);
    const bool gathers = plan.parallel.zero == 1 || plan.parallel.zero == 2;
    times.parameter_gather.push_back(gathers ? parameter_gather_time(plan, layouts, weights, buckets) : Seconds(0.0));
  }
  times.tied_table_reduce = tied_table_time(plan, layouts, elements);
  times.quantize_per_byte =
      Seconds(plan.hardware.time.memory_bound.bytes_factor / plan.hardware.device.memory_bandwidth.value);
  const double sharing = core_sharing(plan);
  return sharing > 1.0 ? scaled(std::move(times), {sharing, sharing}) : times;
}

}  // namespace reckon
