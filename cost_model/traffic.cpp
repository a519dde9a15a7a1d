#include "cost_model/traffic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "cost_model/stage_work.h"
#include "plan/kept_tensors.h"
#include "plan/rank_grid.h"
#include "plan/state_traffic.h"

namespace reckon {

namespace {

using Key = std::tuple<std::string, std::string, std::string>;  // group, collective, dtype

struct Amount {
  double calls = 0, bytes = 0;
};

using Traffic = std::map<Key, Amount>;

class Counter {
 public:
  explicit Counter(const Plan& plan) : plan_(plan), grid_(plan.parallel) {}

  void add(Traffic& traffic, Collective collective, Group group, double bytes, double calls,
           NumberFormat format) const {
    const std::int64_t ranks = grid_.size(group);
    if (ranks <= 1 || bytes <= 0.0 || calls <= 0.0) return;
    Amount& amount =
        traffic[{std::string(name_of(group)), std::string(name_of(collective)), std::string(name_of(format))}];
    amount.calls += calls;
    amount.bytes += calls * bytes_sent_per_rank(collective, Bytes(std::llround(bytes)), static_cast<int>(ranks));
  }

  void add(Traffic& traffic, const std::vector<CollectiveCall>& calls, double times) const {
    for (const CollectiveCall& call : calls)
      add(traffic, call.collective, call.group, static_cast<double>(call.bytes.value), times * call.calls,
          tensor_format(plan_));
  }

  void add_section(Traffic& traffic, const OpList& list, double times) const {
    for (const Op& op : list.ops) {
      add(traffic, op.forward_collectives, times);
      add(traffic, op.backward_collectives, times);
    }
  }

  void add_recomputed(Traffic& traffic, const OpList& list, std::int64_t stage, double times) const {
    if (times <= 0.0 || list.ops.empty()) return;
    const KeptSet kept = kept_tensors(plan_, list, plan_.activations.recompute, static_cast<int>(stage));
    for (const int op : kept.recomputed_ops)
      add(traffic, list.ops[static_cast<std::size_t>(op)].forward_collectives, times);
  }

 private:
  const Plan& plan_;
  RankGrid grid_;
};

void add_layers(const Counter& counter, const OpTimes& times, const ChunkLayers& layers, std::int64_t stage,
                double micro_batches, Traffic& traffic) {
  const auto count = [&](std::int64_t n) { return micro_batches * static_cast<double>(n); };
  if (layers.embedding) counter.add_section(traffic, times.embedding.list, micro_batches);
  counter.add_section(traffic, times.dense_layer.list, count(layers.dense));
  counter.add_section(traffic, times.moe_layer.list, count(layers.moe));
  if (layers.head) counter.add_section(traffic, times.head.list, micro_batches);
  counter.add_recomputed(traffic, times.dense_layer.list, stage, count(layers.recomputed_dense));
  counter.add_recomputed(traffic, times.moe_layer.list, stage, count(layers.recomputed_moe));
}

void add_states(const Plan& plan, std::int64_t stage, Traffic& traffic) {
  for (const StateTraffic& sent : state_traffic(plan, stage)) {
    Amount& amount = traffic[{std::string(name_of(sent.group)), std::string(name_of(sent.collective)), sent.dtype}];
    amount.calls += static_cast<double>(sent.calls);
    amount.bytes += sent.bytes_sent;
  }
}

void add_messages(const Plan& plan, const Counter& counter, std::int64_t stage, Traffic& traffic) {
  if (plan.parallel.pipeline == 1) return;
  const std::int64_t tokens = plan.batch.micro_batch * plan.batch.sequence_length / plan.context();
  const std::int64_t share = plan.parallel.sequence ? plan.parallel.tensor : 1;
  const double width = payload_bits(tensor_format(plan)) / 8.0;
  const double bytes = static_cast<double>(tokens * plan.model.hidden / share) * width;
  const auto per_chunk = static_cast<double>(plan.micro_batches());
  double messages = 0.0;  // outputs to the next virtual stage, input gradients to the previous one
  for (std::int64_t chunk = 0; chunk < plan.parallel.chunks; ++chunk) {
    const std::int64_t virtual_stage = chunk * plan.parallel.pipeline + stage;
    messages += virtual_stage + 1 < plan.virtual_stages() ? per_chunk : 0.0;
    messages += virtual_stage > 0 ? per_chunk : 0.0;
  }
  counter.add(traffic, Collective::send_receive, Group::pipeline, bytes, messages, tensor_format(plan));
}

}  // namespace

std::vector<TrafficEntry> step_traffic(const Plan& plan, const OpTimes& times) {
  const Counter counter(plan);
  Traffic worst;
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    Traffic traffic;
    for (const ChunkLayers& layers : chunk_layers(plan, stage))
      add_layers(counter, times, layers, stage, static_cast<double>(plan.micro_batches()), traffic);
    add_states(plan, stage, traffic);
    add_messages(plan, counter, stage, traffic);
    for (const auto& [key, amount] : traffic)
      if (amount.bytes > worst[key].bytes) worst[key] = amount;
  }
  std::vector<TrafficEntry> entries;
  for (const auto& [key, amount] : worst)
    entries.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), std::llround(amount.calls), std::llround(amount.bytes)});
  return entries;
}

}  // namespace reckon
