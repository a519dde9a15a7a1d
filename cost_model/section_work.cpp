#include "cost_model/section_work.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "plan/core_sharing.h"

namespace reckon {

namespace {

std::string collective_name(const CollectiveCall& call) {
  return std::string(name_of(call.group)) + "." + std::string(name_of(call.collective));
}

/// Name of a component, put together only where a ledger is kept.
struct ComponentName {
  std::string_view phase, op;

  std::string text() const { return std::string(phase) + std::string(op); }
};

/// Adds up one action, phase by phase.
class ActionBuilder {
 public:
  ActionBuilder(const OverlapLinks& links, ActionTime& action, Ledgers ledgers)
      : links_(links), action_(action), keeps_ledger_(ledgers == Ledgers::kept) {}

  void compute(ComponentName component, Seconds seconds) {
    if (seconds.value <= 0.0) return;
    action_.elapsed += seconds;
    if (keeps_ledger_) action_.ledger.add(component.text(), seconds, seconds);
    action_.phases.push_back({seconds, Seconds(0.0), false});
  }

  void transfer(const CollectiveCall& call, Seconds seconds) {
    if (seconds.value <= 0.0) return;
    action_.elapsed += seconds;
    if (keeps_ledger_) action_.ledger.add(collective_name(call), seconds, seconds);
    action_.phases.push_back({Seconds(0.0), seconds, links_.between_nodes(call.group)});
  }

  void forward(const Op& op, const OpTime& time, std::string_view phase);
  void backward(const Op& op, const OpTime& time);

 private:
  using TimedCalls = std::vector<std::pair<const CollectiveCall*, Seconds>>;
  void overlapped(ComponentName component, Seconds compute_seconds, const TimedCalls& calls);

  const OverlapLinks& links_;
  ActionTime& action_;
  bool keeps_ledger_;
};

/// Computation while `calls` run: their excess, slow-down included, is the communication's exposed time.
void ActionBuilder::overlapped(ComponentName component, Seconds compute_seconds, const TimedCalls& calls) {
  if (compute_seconds.value <= 0.0) {
    for (const auto& [call, seconds] : calls) transfer(*call, seconds);
    return;
  }
  compute(component, compute_seconds);
  Seconds communication(0.0);
  for (const auto& [call, seconds] : calls) communication += seconds;
  if (communication.value <= 0.0) return;
  OverlapPhase& phase = action_.phases.back();
  phase.transfer = communication;
  phase.between_nodes = links_.between_nodes(calls.front().first->group);
  const OverlapRules& rules = links_.rules();
  const Seconds both =
      reckon::overlapped(compute_seconds, communication, rules.compute_slowdown, rules.transfer_slowdown);
  const Seconds excess = both - compute_seconds;
  action_.elapsed += excess;
  if (!keeps_ledger_) return;
  for (const auto& [call, seconds] : calls)
    action_.ledger.add(collective_name(*call), seconds, excess * (seconds.value / communication.value));
}

void ActionBuilder::forward(const Op& op, const OpTime& time, std::string_view phase) {
  TimedCalls beside;
  for (std::size_t i = 0; i < op.forward_collectives.size(); ++i)
    if (is_beside(op.forward_collectives[i]))
      beside.emplace_back(&op.forward_collectives[i], time.forward_collectives[i]);
  overlapped({phase, op.name}, time.forward, beside);
  for (std::size_t i = 0; i < op.forward_collectives.size(); ++i)
    if (!is_beside(op.forward_collectives[i])) transfer(op.forward_collectives[i], time.forward_collectives[i]);
}

bool reduces(const CollectiveCall& call) {
  return call.collective == Collective::all_reduce || call.collective == Collective::reduce_scatter;
}

void ActionBuilder::backward(const Op& op, const OpTime& time) {
  const bool column_parallel =
      op.kind == OpKind::gemm && std::any_of(op.backward_collectives.begin(), op.backward_collectives.end(), reduces);
  TimedCalls with_input, with_weight;
  for (std::size_t i = 0; i < op.backward_collectives.size(); ++i) {
    const CollectiveCall& call = op.backward_collectives[i];
    const Seconds seconds = time.backward_collectives[i];
    if (is_beside(call)) with_input.emplace_back(&call, seconds);
    else if (!column_parallel) transfer(call, seconds);
    else (reduces(call) ? with_weight : with_input).emplace_back(&call, seconds);
  }
  overlapped({"backward.", op.name}, time.input_gradient, with_input);
  overlapped({"backward.", op.name}, time.weight_gradient, with_weight);
}

}  // namespace

OverlapLinks::OverlapLinks(const Plan& plan) : layouts_(plan) {
  rules_.compute_slowdown = overlap_slowdown(plan).compute;
  rules_.transfer_slowdown = overlap_slowdown(plan).communication;
  rules_.reduce_between_nodes = between_nodes(Group::gradient);
  rules_.gather_between_nodes = between_nodes(Group::shard);
}

SectionWork section_work(const OverlapLinks& links, const StorageRates& rates, const SectionTimes& section,
                         const KeptSet& kept, Ledgers ledgers) {
  SectionWork work;
  work.gather = section.parameter_gather;
  work.reduce = section.gradient_reduce;
  const StorageTimes storage = storage_times(section.list, kept, rates);
  ActionBuilder forward(links, work.forward, ledgers), backward(links, work.backward, ledgers);
  for (std::size_t i = 0; i < section.ops.size(); ++i) forward.forward(section.list.ops[i], section.ops[i], "forward.");
  forward.compute({"forward.", "quantize"}, storage.quantize);
  backward.compute({"backward.", "dequantize"}, storage.dequantize);
  for (const int op : kept.recomputed_ops) {
    const auto index = static_cast<std::size_t>(op);
    backward.forward(section.list.ops[index], section.ops[index], "recompute.");
  }
  for (std::size_t i = section.ops.size(); i-- > 0;) backward.backward(section.list.ops[i], section.ops[i]);
  return work;
}

}  // namespace reckon
