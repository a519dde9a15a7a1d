#include "cost_model/shape_costs.h"

#include <utility>

#include "cost_model/estimate_op_times.h"
#include "cost_model/stage_work.h"
#include "plan/state_calls.h"
#include "plan/step_documents.h"

namespace reckon {

double SectionCost::excess(std::vector<Known>& known, const std::vector<OverlapPhase>& phases, double alone,
                           const OverlapRules& rules, double reduce, double gather) {
  if (reduce + gather <= 0) return 0;
  for (const Known& one : known)
    if (one.reduce == reduce && one.gather == gather && one.reduce_between_nodes == rules.reduce_between_nodes &&
        one.gather_between_nodes == rules.gather_between_nodes)
      return one.excess;
  const Seconds longer = section_excess(phases, Seconds(alone), rules, Seconds(reduce), Seconds(gather));
  known.push_back({reduce, gather, longer.value, rules.reduce_between_nodes, rules.gather_between_nodes});
  return longer.value;
}

namespace {

/// Attention of the plan's documents, whoever holds them: how rows are dealt to replicas, which candidates of one shape
/// do differently, is left to the full prediction.
AttentionWork shape_work(Plan plan) {
  plan.parallel.data = plan.parallel.expert = 1;
  plan.parallel.zero_group = 0;
  return planned_attention_work(plan);
}

}  // namespace

ShapeCosts::ShapeCosts(Plan plan)
    : plan_(std::move(plan)),
      work_(shape_work(plan_)),
      token_bytes_(micro_batch_bytes(plan_)),
      constant_bytes_(reckon::constant_bytes(plan_)),
      message_bytes_(stage_message(plan_).bytes),
      cells_(kModes * kBits * kSections * kStorages) {}

ShapeCosts::Cell& ShapeCosts::cell(Section section, const Treatment& t) {
  const std::size_t index =
      ((static_cast<std::size_t>(section) * kModes + static_cast<std::size_t>(t.recompute)) * kStorages + t.storage) *
          kBits +
      static_cast<std::size_t>(t.bits);
  if (!cells_[index]) cells_[index] = std::make_unique<Cell>();
  return *cells_[index];
}

Plan ShapeCosts::treated(const Treatment& treatment) const {
  Plan plan = plan_;
  apply_storage(storage_choices()[treatment.storage], plan.activations);
  if (treatment.bits > 0) plan.activations.bits_by_stage = {treatment.bits};
  return plan;
}

const OpList& ShapeCosts::list(Section section) {
  auto& list = lists_[static_cast<std::size_t>(section)];
  if (!list) list = section_ops(plan_, section, work_);
  return *list;
}

const SectionMemory& ShapeCosts::memory(Section section, const Treatment& treatment) {
  Cell& found = cell(section, treatment);
  if (!found.has_memory) {
    const OpList& ops = list(section);
    found.memory = section_memory(ops, kept_tensors(treated(treatment), ops, treatment.recompute, 0));
    found.has_memory = true;
  }
  return found.memory;
}

SectionCost& ShapeCosts::cost(Section section, const Treatment& treatment) {
  Cell& found = cell(section, treatment);
  if (!found.has_cost) {
    if (!times_) times_ = estimate_op_times(plan_, work_);
    SectionElapsed elapsed = section_elapsed(treated(treatment), *times_, times_->of(section), treatment.recompute, 0);
    found.cost.forward = elapsed.forward.value;
    found.cost.backward = elapsed.backward.value;
    found.cost.forward_phases = std::move(elapsed.forward_phases);
    found.cost.backward_phases = std::move(elapsed.backward_phases);
    found.has_cost = true;
  }
  return found.cost;
}

}  // namespace reckon
