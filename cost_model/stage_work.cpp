#include "cost_model/stage_work.h"

#include <algorithm>
#include <array>
#include <optional>

#include "plan/core_sharing.h"
#include "plan/kept_tensors.h"
#include "plan/parameter_layout.h"
#include "plan/pipeline_schedule.h"
#include "plan/rank_grid.h"

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
    rules_.background_between_nodes = between_nodes(Group::gradient);
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
  add_compute(action, phase + std::string(op.name), time.forward);
  for (std::size_t i = 0; i < op.forward_collectives.size(); ++i)
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
    if (!column_parallel) add_transfer(links, action, call, seconds);
    else (reduces(call) ? with_weight : with_input).emplace_back(&call, seconds);
  }
  const std::string component = "backward." + std::string(op.name);
  add_overlapped(links, action, component, time.input_gradient, with_input);
  add_overlapped(links, action, component, time.weight_gradient, with_weight);
}

/// Passes that store kept tensors below the width they are computed in: read wide and write narrow, and back.
Seconds storage_pass(const OpTimes& times, const OpList& list, const KeptSet& kept) {
  double bytes = 0.0;
  for (const KeptTensor& tensor : kept.kept) {
    const Tensor& source = list.tensors[static_cast<std::size_t>(tensor.tensor)];
    if (payload_bits(tensor.storage.format) < payload_bits(source.format))
      bytes += static_cast<double>(source.bytes().value + tensor.bytes.value);
  }
  return times.quantize_per_byte * bytes;
}

/// Forward and backward of one section (an embedding, a layer, the head) with what its policy keeps and recomputes.
struct SectionWork {
  ActionTime forward, backward;
  Seconds gather, reduce;  // ZeRO, once
  std::int64_t weights = 0;
};

SectionWork section_work(const Plan& plan, const Links& links, const OpTimes& times, const SectionTimes& section,
                         Recompute recompute, std::int64_t stage) {
  SectionWork work;
  if (section.ops.empty()) return work;  // the model has no such layer
  work.gather = section.parameter_gather;
  work.reduce = section.gradient_reduce;
  const KeptSet kept = kept_tensors(plan, section.list, recompute, static_cast<int>(stage));
  const Seconds storage = storage_pass(times, section.list, kept);
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

/// Sections of one chunk in model order, equal neighbours counted together.
struct Run {
  const SectionWork* work;
  std::int64_t count;
};

void add_gathering(ActionTime& action, const std::string& component, Seconds busy, Seconds exposed) {
  if (busy.value <= 0.0 && exposed.value <= 0.0) return;
  action.elapsed += exposed;
  action.ledger.add(component, busy, exposed);
}

/// Each section's computation overlaps with the gather of the next and the reduction of the previous, and ends when
/// they have.
ActionTime chunk_action(const Plan& plan, const Links& links, const std::vector<Run>& runs, bool backward) {
  ActionTime total;
  std::vector<const SectionWork*> order;
  for (const Run& run : runs) {
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
    Seconds left = both;
    const Seconds beside = run_beside(section.phases, links.rules(), left);
    const Seconds excess = beside + left - section.elapsed;
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

/// Last micro-batch without sharded gradients: sections fill buckets, whose reduction goes on beside the sections after
/// them. Chunks come last to first; in between run the backwards of the micro-batches that share their round.
class BucketWalk {
 public:
  BucketWalk(const Links& links, Seconds reduce, std::int64_t buckets, std::int64_t weights)
      : links_(links), bucket_(reduce * (1.0 / static_cast<double>(buckets))), buckets_(buckets), weights_(weights) {}

  /// Elapsed time of one chunk's backward.
  Seconds chunk(const std::vector<Run>& runs) {
    Seconds elapsed(0.0);
    for (auto run = runs.rbegin(); run != runs.rend(); ++run)
      for (std::int64_t i = 0; i < run->count; ++i) {
        elapsed += run_beside(run->work->backward.phases, links_.rules(), pending_);
        fill(run->work->weights);
      }
    return elapsed;
  }
  /// What `count` other backwards of the next chunk take longer for the buckets that they find.
  Seconds between(const std::vector<Run>& runs, std::int64_t count) {
    Seconds longer(0.0);
    for (std::int64_t i = 0; i < count && pending_.value > 0.0; ++i)
      for (auto run = runs.rbegin(); run != runs.rend(); ++run)
        for (std::int64_t j = 0; j < run->count && pending_.value > 0.0; ++j)
          longer += run_beside(run->work->backward.phases, links_.rules(), pending_) - run->work->backward.elapsed;
    return longer;
  }
  /// Buckets that are waiting, and those that were never full.
  Seconds left() const { return pending_ + bucket_ * static_cast<double>(buckets_ - sent_); }

 private:
  void fill(std::int64_t weights) {
    filled_ += weights;
    const auto full = static_cast<std::int64_t>(static_cast<double>(buckets_) * static_cast<double>(filled_) /
                                                static_cast<double>(weights_));
    pending_ += bucket_ * static_cast<double>(full - sent_);
    sent_ = full;
  }

  const Links& links_;
  Seconds bucket_, pending_;
  std::int64_t buckets_, weights_, sent_ = 0, filled_ = 0;
};

void add_last_backward(const Plan& plan, const Links& links, const OpTimes& times, std::size_t stage,
                       const std::vector<std::vector<Run>>& chunks, StageWork& work) {
  for (const ActionTime& action : work.backward) work.last_backward.push_back(action.elapsed);
  const Seconds reduce = times.gradient_reduce[stage];
  if (plan.parallel.zero >= 2 || reduce.value <= 0.0) return;
  std::int64_t weights = 0;
  for (const auto& runs : chunks)
    for (const Run& run : runs) weights += run.count * run.work->weights;
  BucketWalk walk(links, reduce, std::max<std::int64_t>(1, times.reduce_calls[stage]), weights);
  for (std::size_t chunk = chunks.size(); chunk-- > 0;) {
    const bool first = chunk + 1 == chunks.size();
    const Seconds longer = first ? Seconds(0.0) : walk.between(chunks[chunk], plan.parallel.pipeline - 1);
    work.last_backward[chunk] = walk.chunk(chunks[chunk]) + longer;
  }
  work.unreduced = walk.left();
}

std::int64_t recomputed_layers(const Plan& plan, std::int64_t stage) {
  const std::vector<std::int64_t>& layers = plan.activations.recompute_layers;
  if (plan.activations.recompute == Recompute::none || layers.empty()) return 0;
  return layers.size() == 1 ? layers.front() : layers.at(static_cast<std::size_t>(stage));
}

/// Works of the sections that occur on one stage.
struct StageSections {
  SectionWork embedding, dense, moe, recomputed_dense, recomputed_moe, head;
};

StageSections stage_sections(const Plan& plan, const Links& links, const OpTimes& times, std::int64_t stage) {
  const SectionElements elements = section_elements(plan.model, plan.parallel.tensor, plan.parallel.expert);
  const auto work = [&](const SectionTimes& section, Recompute recompute, std::int64_t weights) {
    SectionWork section_result = section_work(plan, links, times, section, recompute, stage);
    section_result.weights = weights;
    return section_result;
  };
  const Recompute none = Recompute::none, recompute = plan.activations.recompute;
  const std::int64_t moe = elements.moe_layer + elements.layer_experts;
  const std::int64_t head = elements.head + (plan.parallel.pipeline > 1 ? elements.tied_table : 0);
  return {work(times.embedding, none, elements.embedding),
          work(times.dense_layer, none, elements.dense_layer),
          work(times.moe_layer, none, moe),
          work(times.dense_layer, recompute, elements.dense_layer),
          work(times.moe_layer, recompute, moe),
          work(times.head, none, head)};
}

std::vector<Run> chunk_runs(const StageSections& sections, const ChunkLayers& layers) {
  std::vector<Run> runs;
  const auto add = [&](const SectionWork& work, std::int64_t count) {
    if (count > 0) runs.push_back({&work, count});
  };
  add(sections.embedding, layers.embedding ? 1 : 0);
  add(sections.recomputed_dense, layers.recomputed_dense);
  add(sections.dense, layers.dense - layers.recomputed_dense);
  add(sections.recomputed_moe, layers.recomputed_moe);
  add(sections.moe, layers.moe - layers.recomputed_moe);
  add(sections.head, layers.head ? 1 : 0);
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

Seconds TimeLedger::busy(const std::string& component) const {
  const auto found = entries_.find(component);
  return found == entries_.end() ? Seconds(0.0) : found->second.busy;
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

std::vector<ChunkLayers> chunk_layers(const Plan& plan, std::int64_t stage) {
  const std::vector<std::int64_t> layers = layers_per_virtual_stage(plan);
  std::vector<ChunkLayers> chunks(static_cast<std::size_t>(plan.parallel.chunks));
  std::int64_t first = 0, to_recompute = recomputed_layers(plan, stage);
  for (std::int64_t virtual_stage = 0; virtual_stage < plan.virtual_stages(); ++virtual_stage) {
    const std::int64_t end = first + layers[static_cast<std::size_t>(virtual_stage)];
    if (virtual_stage % plan.parallel.pipeline == stage) {
      ChunkLayers& chunk = chunks[static_cast<std::size_t>(virtual_stage / plan.parallel.pipeline)];
      chunk.embedding = virtual_stage == 0;
      chunk.head = virtual_stage == plan.virtual_stages() - 1;
      for (std::int64_t layer = first; layer < end; ++layer) {
        const bool moe = plan.model.layer_is_moe(layer), recomputed = to_recompute-- > 0;
        (moe ? chunk.moe : chunk.dense) += 1;
        if (recomputed) (moe ? chunk.recomputed_moe : chunk.recomputed_dense) += 1;
      }
    }
    first = end;
  }
  return chunks;
}

std::vector<StageWork> stage_works(const Plan& plan, const OpTimes& times) {
  const Links links(plan);
  std::vector<StageWork> works;
  std::optional<StageSections> sections;
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    // Stages differ only in the widths at which they store tensors.
    if (!sections || !plan.activations.bits_by_stage.empty()) sections = stage_sections(plan, links, times, stage);
    StageWork work;
    std::vector<std::vector<Run>> chunks;
    for (const ChunkLayers& layers : chunk_layers(plan, stage)) {
      chunks.push_back(chunk_runs(*sections, layers));
      work.forward.push_back(chunk_action(plan, links, chunks.back(), false));
      work.backward.push_back(chunk_action(plan, links, chunks.back(), true));
    }
    add_last_backward(plan, links, times, static_cast<std::size_t>(stage), chunks, work);
    works.push_back(std::move(work));
  }
  return works;
}

}  // namespace reckon
