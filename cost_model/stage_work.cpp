#include "cost_model/stage_work.h"

#include <algorithm>

#include "plan/stage_sections.h"

namespace reckon {

namespace {

void add_gathering(ActionTime& action, const std::string& component, Seconds busy, Seconds exposed) {
  if (busy.value <= 0.0 && exposed.value <= 0.0) return;
  action.elapsed += exposed;
  action.ledger.add(component, busy, exposed);
}

/// Each section's computation overlaps with the gather of the next and the reduction of the previous, and ends when
/// they have.
ActionTime chunk_action(const Plan& plan, const OverlapLinks& links, const std::vector<WorkRun>& runs, bool backward) {
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
std::vector<SectionWork> section_works(const Plan& plan, const OverlapLinks& links, const OpTimes& times,
                                       const SectionWeights& weights, std::int64_t stage) {
  std::vector<SectionWork> works(kSectionVariants);
  for (const Section kind : {Section::embedding, Section::dense_layer, Section::moe_layer, Section::head})
    for (const bool recomputed : {false, true}) {
      const Recompute recompute = recomputed ? plan.activations.recompute : Recompute::none;
      const SectionTimes& section = times.of(kind);
      if (section.ops.empty()) continue;  // the model has no such layer
      SectionWork& work = works[variant({kind, 0, recomputed})];
      work = section_work(links, times.storage, section,
                          kept_tensors(plan, section.list, recompute, static_cast<int>(stage)), Ledgers::kept);
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

std::vector<StageWork> stage_works(const Plan& plan, const OpTimes& times) {
  const OverlapLinks links(plan);
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
