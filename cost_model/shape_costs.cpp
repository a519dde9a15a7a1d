#include "cost_model/shape_costs.h"

#include <algorithm>
#include <utility>

#include "cost_model/estimate_op_times.h"
#include "cost_model/storage_rates.h"
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

bool are_equal(const KeptTensor& a, const KeptTensor& b) {
  return a.tensor == b.tensor && a.storage == b.storage && a.bytes == b.bytes && a.encoded == b.encoded &&
         a.needed_until == b.needed_until;
}

bool are_equal(const KeptSet& a, const KeptSet& b) {
  return a.recomputed_ops == b.recomputed_ops &&
         std::equal(a.kept.begin(), a.kept.end(), b.kept.begin(), b.kept.end(),
                    [](const KeptTensor& one, const KeptTensor& other) { return are_equal(one, other); });
}

/// Attention of the plan's documents, whoever holds them: how rows are dealt to replicas, which candidates of one shape
/// do differently, is left to the full prediction.
AttentionWork shape_work(const Plan& shape) {
  if (!shape.has_documents()) return planned_attention_work(shape);
  Plan plan = shape;
  plan.parallel.data = plan.parallel.expert = 1;
  plan.parallel.zero_group = 0;
  return planned_attention_work(plan);
}

}  // namespace

StoragePlans::StoragePlans(const Plan& base) {
  for (const StorageChoice& choice : storage_choices()) {
    plans_.push_back(base);
    apply_storage(choice, plans_.back().activations);
  }
}

const Plan& StoragePlans::treated(const Treatment& treatment) {
  Plan& plan = plans_[treatment.storage];
  plan.activations.bits_by_stage.assign(treatment.bits > 0 ? 1 : 0, treatment.bits);
  return plan;
}

ShapeCosts::ShapeCosts(Plan plan, StoragePlans& storage)
    : plan_(std::move(plan)),
      storage_(storage),
      work_(shape_work(plan_)),
      layouts_(plan_),
      links_(plan_),
      rates_(storage_rates(plan_)),
      token_bytes_(micro_batch_bytes(plan_)),
      constant_bytes_(reckon::constant_bytes(plan_)),
      message_bytes_(stage_message(plan_).bytes) {}

const OpList& ShapeCosts::list(Section kind) {
  OpList& list = section(kind).times.list;
  if (list.ops.empty()) list = section_ops(plan_, kind, work_);
  return list;
}

ShapeCosts::Kept& ShapeCosts::find_kept(Section kind, const Treatment& treatment) {
  KeptSet set = kept_tensors(storage_.treated(treatment), list(kind), treatment.recompute, 0);
  auto& known = section(kind).kept;
  for (const std::unique_ptr<Kept>& one : known)
    if (are_equal(one->set, set)) return *one;
  known.push_back(std::make_unique<Kept>());
  known.back()->set = std::move(set);
  return *known.back();
}

ShapeCosts::Kept& ShapeCosts::kept(Section kind, const Treatment& t) {
  const std::size_t index =
      (static_cast<std::size_t>(t.recompute) * kStorages + t.storage) * kBits + static_cast<std::size_t>(t.bits);
  Kept*& found = section(kind).by_treatment[index];
  if (found == nullptr) found = &find_kept(kind, t);
  return *found;
}

const SectionMemory& ShapeCosts::memory(Section kind, const Treatment& treatment) {
  Kept& found = kept(kind, treatment);
  if (!found.memory) found.memory = section_memory(list(kind), found.set);
  return *found.memory;
}

SectionCost& ShapeCosts::cost(Section kind, const Treatment& treatment) {
  Kept& found = kept(kind, treatment);
  if (found.cost) return *found.cost;
  SectionTimes& times = section(kind).times;
  if (times.ops.empty()) times = section_op_times(plan_, layouts_, std::move(times.list), work_);
  SectionWork work = section_work(links_, rates_, times, found.set, Ledgers::none);
  SectionCost& cost = found.cost.emplace();
  cost.forward = work.forward.elapsed.value;
  cost.backward = work.backward.elapsed.value;
  cost.forward_phases = std::move(work.forward.phases);
  cost.backward_phases = std::move(work.backward.phases);
  return cost;
}

}  // namespace reckon
