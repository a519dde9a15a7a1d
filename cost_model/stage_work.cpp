#include "cost_model/stage_work.h"

#include <algorithm>
#include <array>
#include <optional>

#include "plan/kept_tensors.h"
#include "plan/pipeline_schedule.h"

namespace reckon {

namespace {

Seconds overlap(const Plan& plan, Seconds compute, Seconds communication) {
  const TimeConstants& time = plan.hardware.time;
  return overlapped(compute, communication, time.overlap_compute_slowdown, time.overlap_communication_slowdown);
}

std::string collective_name(const CollectiveCall& call) {
  return std::string(name_of(call.group)) + "." + std::string(name_of(call.collective));
}

void add_exposed(ActionTime& action, const std::string& component, Seconds seconds) {
  if (seconds.value <= 0.0) return;
  action.elapsed += seconds;
  action.ledger.add(component, seconds, seconds);
}

/// `compute` runs while `calls` run: their excess, slow-down included, is the communication's exposed time.
void add_overlapped(const Plan& plan, ActionTime& action, const std::string& component, Seconds compute,
                    const std::vector<std::pair<std::string, Seconds>>& calls) {
  Seconds communication(0.0);
  for (const auto& [name, seconds] : calls) communication += seconds;
  add_exposed(action, component, compute);
  if (communication.value <= 0.0) return;
  const Seconds excess = overlap(plan, compute, communication) - compute;
  action.elapsed += excess;
  for (const auto& [name, seconds] : calls)
    action.ledger.add(name, seconds, excess * (seconds.value / communication.value));
}

void add_forward(ActionTime& action, const Op& op, const OpTime& time, const std::string& phase) {
  add_exposed(action, phase + std::string(op.name), time.forward);
  for (std::size_t i = 0; i < op.forward_collectives.size(); ++i)
    add_exposed(action, collective_name(op.forward_collectives[i]), time.forward_collectives[i]);
}

bool reduces(const CollectiveCall& call) {
  return call.collective == Collective::all_reduce || call.collective == Collective::reduce_scatter;
}

void add_backward(const Plan& plan, ActionTime& action, const Op& op, const OpTime& time) {
  const bool column_parallel =
      op.kind == OpKind::gemm && std::any_of(op.backward_collectives.begin(), op.backward_collectives.end(), reduces);
  std::vector<std::pair<std::string, Seconds>> with_input, with_weight;
  for (std::size_t i = 0; i < op.backward_collectives.size(); ++i) {
    const CollectiveCall& call = op.backward_collectives[i];
    const Seconds seconds = time.backward_collectives[i];
    if (!column_parallel) add_exposed(action, collective_name(call), seconds);
    else (reduces(call) ? with_weight : with_input).emplace_back(collective_name(call), seconds);
  }
  const std::string component = "backward." + std::string(op.name);
  add_overlapped(plan, action, component, time.input_gradient, with_input);
  add_overlapped(plan, action, component, time.weight_gradient, with_weight);
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
};

SectionWork section_work(const Plan& plan, const OpTimes& times, const SectionTimes& section, Recompute recompute,
                         std::int64_t stage) {
  SectionWork work;
  if (section.ops.empty()) return work;  // the model has no such layer
  work.gather = section.parameter_gather;
  work.reduce = section.gradient_reduce;
  const KeptSet kept = kept_tensors(plan, section.list, recompute, static_cast<int>(stage));
  const Seconds storage = storage_pass(times, section.list, kept);
  for (std::size_t i = 0; i < section.ops.size(); ++i)
    add_forward(work.forward, section.list.ops[i], section.ops[i], "forward.");
  add_exposed(work.forward, "forward.quantize", storage);
  for (const int op : kept.recomputed_ops) {
    const auto index = static_cast<std::size_t>(op);
    add_forward(work.backward, section.list.ops[index], section.ops[index], "recompute.");
  }
  add_exposed(work.backward, "backward.dequantize", storage);
  for (std::size_t i = section.ops.size(); i-- > 0;)
    add_backward(plan, work.backward, section.list.ops[i], section.ops[i]);
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

/// Each section's computation overlaps with the gather of the next and the reduction of the previous.
ActionTime chunk_action(const Plan& plan, const std::vector<Run>& runs, bool backward) {
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
    const Seconds compute = (backward ? order[i]->backward : order[i]->forward).elapsed;
    const Seconds both = gather + reduce;
    if (both.value <= 0.0) continue;
    const Seconds excess = overlap(plan, compute, both) - compute;
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

std::int64_t recomputed_layers(const Plan& plan, std::int64_t stage) {
  const std::vector<std::int64_t>& layers = plan.activations.recompute_layers;
  if (plan.activations.recompute == Recompute::none || layers.empty()) return 0;
  return layers.size() == 1 ? layers.front() : layers.at(static_cast<std::size_t>(stage));
}

/// Works of the sections that occur on one stage.
struct StageSections {
  SectionWork embedding, dense, moe, recomputed_dense, recomputed_moe, head;
};

StageSections stage_sections(const Plan& plan, const OpTimes& times, std::int64_t stage) {
  const auto work = [&](const SectionTimes& section, Recompute recompute) {
    return section_work(plan, times, section, recompute, stage);
  };
  const Recompute recompute = plan.activations.recompute;
  return {work(times.embedding, Recompute::none), work(times.dense_layer, Recompute::none),
          work(times.moe_layer, Recompute::none), work(times.dense_layer, recompute),
          work(times.moe_layer, recompute),       work(times.head, Recompute::none)};
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

SectionElapsed section_elapsed(const Plan& plan, const OpTimes& times, const SectionTimes& section,
                               Recompute recompute, std::int64_t stage) {
  const SectionWork work = section_work(plan, times, section, recompute, stage);
  return {work.forward.elapsed, work.backward.elapsed};
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
  std::vector<StageWork> works;
  std::optional<StageSections> sections;
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    // Stages differ only in the widths at which they store tensors.
    if (!sections || !plan.activations.bits_by_stage.empty()) sections = stage_sections(plan, times, stage);
    StageWork work;
    for (const ChunkLayers& layers : chunk_layers(plan, stage)) {
      const std::vector<Run> runs = chunk_runs(*sections, layers);
      work.forward.push_back(chunk_action(plan, runs, false));
      work.backward.push_back(chunk_action(plan, runs, true));
    }
    works.push_back(std::move(work));
  }
  return works;
}

}  // namespace reckon
