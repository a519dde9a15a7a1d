#include "cost_model/traffic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "plan/kept_tensors.h"
#include "plan/rank_grid.h"
#include "plan/stage_sections.h"
#include "plan/state_calls.h"
#include "plan/state_traffic.h"

namespace reckon {

namespace {

using Key = std::tuple<std::string, std::string, std::string>;  // group, collective, dtype

struct Amount {
  double calls = 0, bytes = 0;
};

using Traffic = std::map<Key, Amount>;

/// Adds up what one stage sends.
class StageTraffic {
 public:
  StageTraffic(const Plan& plan, const OpTimes& times, std::int64_t stage)
      : plan_(plan), times_(times), grid_(plan.parallel), stage_(stage) {}

  Traffic add_up() {
    for (const ChunkSections& sections : stage_sections(plan_, stage_))
      for (const SectionRun& run : runs_of(sections)) add_section(run);
    add_states();
    add_messages();
    for (const StateTraffic& sent : ring_traffic(plan_, times_.ring, forward_attention_, backward_attention_))
      add(sent);
    return std::move(traffic_);
  }

 private:
  void add(const CollectiveCall& call, double times) {
    const std::int64_t ranks = grid_.size(call.group);
    if (call.group == Group::ring) return;  // counted rank by rank
    if (ranks <= 1 || call.bytes.value <= 0 || times <= 0.0) return;
    Amount& amount = traffic_[{std::string(name_of(call.group)), std::string(name_of(call.collective)),
                               std::string(name_of(call.fp32 ? NumberFormat::fp32 : tensor_format(plan_)))}];
    amount.calls += times * call.calls;
    amount.bytes += times * call.calls * bytes_sent_per_rank(call.collective, call.bytes, static_cast<int>(ranks));
  }
  void add(const StateTraffic& sent) {
    Amount& amount = traffic_[{std::string(name_of(sent.group)), std::string(name_of(sent.collective)), sent.dtype}];
    amount.calls += static_cast<double>(sent.calls);
    amount.bytes += sent.bytes_sent;
  }
  void add(const std::vector<CollectiveCall>& calls, double times) {
    for (const CollectiveCall& call : calls) add(call, times);
  }

  /// Ops of every forward and backward, and ops that run again.
  void add_section(const SectionRun& run) {
    const double times = static_cast<double>(run.count * plan_.micro_batches());
    const OpList& list = times_.of(run.section.kind).list;
    for (const Op& op : list.ops) {
      add_forward(op, run.count);
      add(op.backward_collectives, times);
      if (op.kind == OpKind::attention) backward_attention_ += run.count;
    }
    const Recompute recompute = run.section.recomputed ? plan_.activations.recompute : Recompute::none;
    for (const int op : kept_tensors(plan_, list, recompute, static_cast<int>(stage_)).recomputed_ops)
      add_forward(list.ops[static_cast<std::size_t>(op)], run.count);
  }

  void add_forward(const Op& op, std::int64_t sections) {
    add(op.forward_collectives, static_cast<double>(sections * plan_.micro_batches()));
    if (op.kind == OpKind::attention) forward_attention_ += sections;
  }

  void add_states() {
    for (const StateTraffic& sent : state_traffic(plan_, stage_)) add(sent);
  }

  /// Outputs to the next virtual stage, input gradients to the previous one.
  void add_messages() {
    const auto micro_batches = static_cast<double>(plan_.micro_batches());
    for (std::int64_t chunk = 0; chunk < plan_.parallel.chunks; ++chunk) {
      const std::int64_t virtual_stage = chunk * plan_.parallel.pipeline + stage_;
      const int neighbours = (virtual_stage + 1 < plan_.virtual_stages()) + (virtual_stage > 0);
      add(stage_message(plan_), micro_batches * neighbours);
    }
  }

  const Plan& plan_;
  const OpTimes& times_;
  RankGrid grid_;
  std::int64_t stage_;
  std::int64_t forward_attention_ = 0, backward_attention_ = 0;  // passes through attention layers of one micro-batch
  Traffic traffic_;
};

}  // namespace

std::vector<TrafficEntry> step_traffic(const Plan& plan, const OpTimes& times) {
  Traffic worst;
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage)
    for (const auto& [key, amount] : StageTraffic(plan, times, stage).add_up())
      if (amount.bytes > worst[key].bytes) worst[key] = amount;
  std::vector<TrafficEntry> entries;
  for (const auto& [key, amount] : worst)
    entries.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), std::llround(amount.calls), std::llround(amount.bytes)});
  return entries;
}

}  // namespace reckon
