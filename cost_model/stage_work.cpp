#include "cost_model/stage_work.h"

#include <algorithm>
#include <array>

#include "plan/core_sharing.h"
#include "plan/kept_tensors.h"
#include "plan/rank_grid.h"
#include "plan/stage_sections.h"

namespace reckon {

namespace {

std::string collective_name(const CollectiveCall& call) {
  return std::string(name_of(call.group)) + "." + std::string(name_of(call.collective));
}

/// Which groups leave the node, and how much what overlaps is slowed.
class Links {
 public:
  explicit Links(const Plan& plan) : plan_(plan), grid_(plan.parallel) {
    rules_.compute_slowdown = overlap_slowdown(plan).compute;
    rules_.transfer_slowdown = overlap_slowdown(plan).communication;
    rules_.reduce_between_nodes = between_nodes(Group::gradient);
    rules_.gather_between_nodes = between_nodes(Group::shard);
  }
  bool between_nodes(Group group) const { return grid_.layout(group, plan_.hardware.devices_per_node).nodes > 1; }
  const OverlapRules& rules() const { return rules_; }

 private:
  const Plan& plan_;
  RankGrid grid_;
  OverlapRules rules_;
};

void add_compute(ActionTime& action, const std::string& component, Seconds seconds) {
  if (seconds.value <= 0.0) return;
  action.elapsed += seconds;
  action.ledger.add(component, seconds, seconds);
  action.phases.push_back({seconds, Seconds(0.0), false});
}

void add_transfer(const Links& links, ActionTime& action, const CollectiveCall& call, Seconds seconds) {
  if (seconds.value <= 0.0) return;
  action.elapsed += seconds;
  action.ledger.add(collective_name(call), seconds, seconds);
  action.phases.push_back({Seconds(0.0), seconds, links.between_nodes(call.group)});
}

using TimedCalls = std::vector<std::pair<const CollectiveCall*, Seconds>>;

/// `compute` runs while `calls` run: their excess, slow-down included, is the communication's exposed time.
void add_overlapped(const Links& links, ActionTime& action, const std::string& component, Seconds compute,
                    const TimedCalls& calls) {
  if (compute.value <= 0.0) {
    for (const auto& [call, seconds] : calls) add_transfer(links, action, *call, seconds);
    return;
  }
  add_compute(action, component, compute);
  Seconds communication(0.0);
  for (const auto& [call, seconds] : calls) communication += seconds;
  if (communication.value <= 0.0) return;
  OverlapPhase& phase = action.phases.back();
  phase.transfer = communication;
  phase.between_nodes = links.between_nodes(calls.front().first->group);
  const OverlapRules& rules = links.rules();
  const Seconds excess = overlapped(compute, communication, rules.compute_slowdown, rules.transfer_slowdown) - compute;
  action.elapsed += excess;
  for (const auto& [call, seconds] : calls)
    action.ledger.add(collective_name(*call), seconds, excess * (seconds.value / communication.value));
}

void add_forward(const Links& links, ActionTime& action, const Op& op, const OpTime& time, const std::string& phase) {
  TimedCalls beside;
  for (std::size_t i = 0; i < op.forward_collectives.size(); ++i)
    if (is_beside(op.forward_collectives[i]))
      beside.emplace_back(&op.forward_collectives[i], time.forward_collectives[i]);
  add_overlapped(links, action, phase + std::string(op.name), time.forward, beside);
  for (std::size_t i = 0; i < op.forward_collectives.size(); ++i)
    if (!is_beside(op.forward_collectives[i]))
      add_transfer(links, action, op.forward_collectives[i], time.forward_collectives[i]);
}

bool reduces(const CollectiveCall& call) {
  return call.collective == Collective::all_reduce || call.collective == Collective::reduce_scatter;
}

void add_backward(const Links& links, ActionTime& action, const Op& op, const OpTime& time) {
  const bool column_parallel =
      op.kind == OpKind::gemm && std::any_of(op.backward_collectives.begin(), op.backward_collectives.end(), reduces);
  TimedCalls with_input, with_weight;
  for (std::size_t i = 0; i < op.backward_collectives.size(); ++i) {
    const CollectiveCall& call = op.backward_collectives[i];
    const Seconds seconds = time.backward_collectives[i];
    if (is_beside(call)) with_input.emplace_back(&call, seconds);
    else if (!column_parallel) add_transfer(links, action, call, seconds);
    else (reduces(call) ? with_weight : with_input).emplace_back(&call, seconds);
  }
  const std::string component = "backward." + std::string(op.name);
  add_overlapped(links, action, component, time.input_gradient, with_input);
  add_overlapped(links, action, component, time.weight_gradient, with_weight);
}

SectionWork section_work(const Plan& plan, const Links& links, const OpTimes& times, const SectionTimes& section,
                         Recompute recompute, std::int64_t stage) {
  SectionWork work;
  if (section.ops.empty()) return work;  // the model has no such layer
  work.gather = section.parameter_gather;
  work.reduce = section.gradient_reduce;
  const KeptSet kept = kept_tensors(plan, section.list, recompute, static_cast<int>(stage));
  const Seconds storage = times.quantize_per_byte * static_cast<double>(storage_pass_bytes(section.list, kept).value);
  for (std::size_t i = 0; i < section.ops.size(); ++i)
    add_forward(links, work.forward, section.list.ops[i], section.ops[i], "forward.");
  add_compute(work.forward, "forward.quantize", storage);
  add_compute(work.backward, "backward.dequantize", storage);
  for (const int op : kept.recomputed_ops) {
    const auto index = static_cast<std::size_t>(op);
    add_forward(links, work.backward, section.list.ops[index], section.ops[index], "recompute.");
  }
  for (std::size_t i = section.ops.size(); i-- > 0;)
    add_backward(links, work.backward, section.list.ops[i], section.ops[i]);
  return work;
}

void add_gathering(ActionTime& action, const std::string& component, Seconds busy, Seconds exposed) {
  if (busy.value <= 0.0 && exposed.value <= 0.0) return;
  action.elapsed += exposed;
  action.ledger.add(component, busy, exposed);
}

/// Each section's computation overlaps with the gather of the next and the reduction of the previous, and ends when
/// they have.
ActionTime chunk_action(const Plan& plan, const Links& links, const std::vector<WorkRun>& runs, bool backward) {
  ActionTime total;
  std::vector<const SectionWork*> order;
  for (const WorkRun& run : runs) {
    const ActionTime& action = backward ? run.work->backward : run.work->forward;
    total.elapsed += action.elapsed * static_cast<double>(run.count);
    total.ledger.add(action.ledger, static_cast<double>(run.count));
    for (std::int64_t i = 0; i < run.count; ++i) order.push_back(run.work);
  }
  if (plan.parallel.zero < 2) return total;
  if (backward) std::reverse(order.begin(), order.end());
  Seconds gather_busy(0.0), gather_exposed(0.0), reduce_busy(0.0), reduce_exposed(0.0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Seconds gather = i + 1 < order.size() ? order[i + 1]->gather : Seconds(0.0);
    const Seconds reduce = backward && i > 0 ? order[i - 1]->reduce : Seconds(0.0);
    const ActionTime& section = backward ? order[i]->backward : order[i]->forward;
    const Seconds both = gather + reduce;
    if (both.value <= 0.0) continue;
    const Seconds excess = section_excess(section.phases, section.elapsed, links.rules(), reduce, gather);
    gather_busy += gather;
    reduce_busy += reduce;
    gather_exposed += excess * (gather / both);
    reduce_exposed += excess * (reduce / both);
  }
  if (!order.empty()) {
    gather_busy += order.front()->gather;
    gather_exposed += order.front()->gather;
    if (backward) {
      reduce_busy += order.back()->reduce;
      reduce_exposed += order.back()->reduce;
    }
  }
  add_gathering(total, "parameter.all_gather", gather_busy, gather_exposed);
  add_gathering(total, "gradient.reduce_scatter", reduce_busy, reduce_exposed);
  return total;
}

/// Works of the sections of one stage, by variant.
std::vector<SectionWork> section_works(const Plan& plan, const Links& links, const OpTimes& times,
                                       const SectionWeights& weights, std::int64_t stage) {
  std::vector<SectionWork> works(kSectionVariants);
  for (const Section kind : {Section::embedding, Section::dense_layer, Section::moe_layer, Section::head})
    for (const bool recomputed : {false, true}) {
      const Recompute recompute = recomputed ? plan.activations.recompute : Recompute::none;
      SectionWork& work = works[variant({kind, 0, recomputed})];
      work = section_work(plan, links, times, times.of(kind), recompute, stage);
      work.weights = weights[static_cast<std::size_t>(kind)].total();
    }
  return works;
}

std::vector<WorkRun> work_runs(const std::vector<SectionWork>& works, const ChunkSections& sections) {
  std::vector<WorkRun> runs;
  for (const SectionRun& run : runs_of(sections)) runs.push_back({&works[variant(run.section)], run.count});
  return runs;
}

}  // namespace

void TimeLedger::add(const std::string& component, Seconds busy, Seconds exposed, double times) {
  Entry& entry = entries_[component];
  entry.busy += busy * times;
  entry.exposed += exposed * times;
}

void TimeLedger::add(const TimeLedger& other, double times) {
  for (const auto& [component, entry] : other.entries_) add(component, entry.busy, entry.exposed, times);
}

Seconds TimeLedger::exposed() const {
  Seconds total(0.0);
  for (const auto& [component, entry] : entries_) total += entry.exposed;
  return total;
}

SectionElapsed section_elapsed(const Plan& plan, const OpTimes& times, const SectionTimes& section, Recompute recompute,
                               std::int64_t stage) {
  const SectionWork work = section_work(plan, Links(plan), times, section, recompute, stage);
  return {work.forward.elapsed, work.backward.elapsed, work.forward.phases, work.backward.phases};
}

OverlapRules overlap_rules(const Plan& plan) {
  return Links(plan).rules();
}

Seconds section_excess(const std::vector<OverlapPhase>& phases, Seconds alone, const OverlapRules& rules,
                       Seconds reduce, Seconds gather) {
  std::array<Background, 2> background = {Background{reduce, rules.reduce_between_nodes},
                                          Background{gather, rules.gather_between_nodes}};
  const Seconds beside = run_beside(phases, rules, background);
  return beside + background[0].left + background[1].left - alone;
}

std::vector<StageWork> stage_works(const Plan& plan, const OpTimes& times) {
  const Links links(plan);
  const SectionWeights weights = section_weights(plan);
  std::vector<StageWork> works;
  std::shared_ptr<const std::vector<SectionWork>> sections;
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    // Stages differ only in the widths at which they store tensors.
    if (!sections || plan.activations.differs_by_stage())
      sections = std::make_shared<const std::vector<SectionWork>>(section_works(plan, links, times, weights, stage));
    StageWork work;
    work.sections = sections;
    for (const ChunkSections& chunk : stage_sections(plan, stage)) {
      work.chunks.push_back(work_runs(*sections, chunk));
      work.forward.push_back(chunk_action(plan, links, work.chunks.back(), false));
      work.backward.push_back(chunk_action(plan, links, work.chunks.back(), true));
    }
    works.push_back(std::move(work));
  }
  return works;
}

}  // namespace reckon
