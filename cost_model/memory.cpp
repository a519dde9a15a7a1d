#include "cost_model/memory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cost_model/allocation_sequence.h"
#include "cost_model/in_parallel.h"
#include "cost_model/stage_memory.h"
#include "plan/kept_tensors.h"
#include "plan/memory_fields.h"
#include "plan/pipeline_schedule.h"
#include "plan/rank_grid.h"
#include "plan/step_documents.h"

namespace reckon {

namespace {

/// Chunk activations alive at the schedule's peak on one stage.
int chunks_in_flight(const Plan& plan, std::int64_t stage) {
  const auto& parallel = plan.parallel;
  const auto stages = static_cast<int>(parallel.pipeline);
  const auto micro_batches = static_cast<int>(plan.micro_batches());
  if (parallel.schedule == ScheduleKind::gpipe) return micro_batches;
  if (parallel.schedule == ScheduleKind::one_forward_one_backward)
    return std::min(micro_batches, stages - static_cast<int>(stage));
  return peak_in_flight(parallel.schedule, stages, static_cast<int>(stage), static_cast<int>(parallel.chunks),
                        std::min(micro_batches, 4 * stages));
}

std::vector<SchedulePoint> points_of(const Plan& plan, std::int64_t stage) {
  return schedule_points(plan.parallel.schedule, static_cast<int>(plan.parallel.pipeline), static_cast<int>(stage),
                         static_cast<int>(plan.parallel.chunks), static_cast<int>(plan.micro_batches()));
}

/// Communicators that a rank of the plan uses: one for every kind of group with more than one member.
std::int64_t used_communicators(const Plan& plan, std::int64_t stage) {
  const ParallelSpec& p = plan.parallel;
  const std::int64_t replicas = p.data * plan.context();
  const bool end_stage = stage == 0 || stage == p.pipeline - 1;
  std::int64_t count = 0;
  for (const std::int64_t ranks : {p.tensor, p.ulysses, p.ring, p.expert, p.pipeline, replicas}) count += ranks > 1;
  if (p.expert > 1 && replicas / p.expert > 1) ++count;                        // gradients of the experts
  if (p.zero > 0 && zero_shards(p) > 1 && zero_shards(p) < replicas) ++count;  // shards apart from replicas
  if (plan.model.tied_head && p.pipeline > 1 && end_stage) ++count;
  return count;
}

StageMemory stage_memory(const Plan& plan, const AttentionWork& work, std::int64_t stage, const StagePeak& peak) {
  StageMemory memory;
  memory.parameters = peak.states.parameters;
  memory.gradients = peak.states.gradients;
  memory.optimizer = peak.states.optimizer;
  memory.activations = peak.activations;
  memory.transient = peak.transient;
  memory.communication = peak.communication;
  memory.peak_allocated = peak.allocated();
  if (!plan.hardware.device.is_cpu)  // the process allocator of a CPU gives back what is freed
    memory.allocator_slack =
        std::max(Bytes(0), peak_reserved(allocation_sequence(plan, work, stage)) - memory.peak_allocated);
  memory.communicators = communicator_bytes(plan, stage);
  memory.context = plan.hardware.context;
  memory.device_used = memory.peak_allocated + memory.allocator_slack + memory.communicators + memory.context;
  return memory;
}

/// Tables differ between stages only in the width of what is stored.
class StageTables {
 public:
  StageTables(const Plan& plan, const AttentionWork& work) : plan_(plan), work_(work) {}

  const SectionTable& at(std::int64_t stage) {
    const int bits = storage_bits(plan_, stage);
    for (const auto& [known, table] : tables_)
      if (known == bits) return table;
    tables_.emplace_back(bits, section_table(plan_, work_, stage));
    return tables_.back().second;
  }

 private:
  const Plan& plan_;
  const AttentionWork& work_;
  std::vector<std::pair<int, SectionTable>> tables_;
};

/// Threads over the stages of a plan: replaying the allocator is what takes time, and a CPU's plan replays none.
int stage_threads(const Plan& plan) {
  if (plan.hardware.device.is_cpu) return 1;
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  return static_cast<int>(std::min({plan.parallel.pipeline, cores, std::int64_t{16}}));
}

/// Component of a device's need that crosses the limit: the first whose bytes no longer fit on top of those before it.
std::string crossing_component(const StageMemory& m, Bytes limit) {
  Bytes sum;
  for (const MemoryField& field : kMemoryFields)
    if (field.kind != MemoryFieldKind::sum && (sum += m.*field.bytes) > limit) return field.name;
  return "communicators";
}

}  // namespace

std::vector<StageProfile> predict_memory(const Plan& resolved) {
  return predict_memory(resolved, planned_attention_work(resolved));
}

std::vector<StageProfile> predict_memory(const Plan& resolved, const AttentionWork& work) {
  const RankGrid grid(resolved.parallel);
  std::vector<StageProfile> stages(static_cast<std::size_t>(resolved.parallel.pipeline));
  in_parallel(stages.size(), stage_threads(resolved), [&](std::size_t i, int) {
    const auto stage = static_cast<std::int64_t>(i);
    StageTables tables(resolved, work);
    const StagePeak peak =
        stage_peak(resolved, tables.at(stage), stage, stage_sections(resolved, stage), points_of(resolved, stage));
    StageProfile profile;
    profile.stage = stage;
    profile.layers = stage_layers(resolved, stage);
    profile.recomputed_layers = recomputed_layers(resolved, stage);
    profile.in_flight =
        static_cast<double>(chunks_in_flight(resolved, stage)) / static_cast<double>(resolved.parallel.chunks);
    profile.activation_bits = {storage_bits(resolved, stage)};
    Coordinates first_of_stage;
    first_of_stage.pipeline = stage;
    profile.worst_rank = grid.rank(first_of_stage);
    profile.memory = stage_memory(resolved, work, stage, peak);
    stages[i] = std::move(profile);
  });
  return stages;
}

Bytes communicator_bytes(const Plan& plan, std::int64_t stage) {
  return used_communicators(plan, stage) * plan.hardware.communicator;
}

Bytes memory_limit(const Plan& plan) {
  return plan.memory.limit.value_or(plan.hardware.device.memory - plan.hardware.context);
}

Bytes memory_need(const Plan& plan, const StageMemory& memory) {
  if (plan.hardware.device.is_cpu) return memory.peak_allocated;
  return memory.peak_allocated + memory.allocator_slack + memory.communicators;
}

Verdict memory_verdict(const Plan& resolved, const std::vector<StageProfile>& stages) {
  return memory_verdict(resolved, planned_attention_work(resolved), stages);
}

Verdict memory_verdict(const Plan& resolved, const AttentionWork& work, const std::vector<StageProfile>& stages) {
  Verdict verdict;
  verdict.limit = memory_limit(resolved);
  const StageProfile* worst = nullptr;
  for (const StageProfile& stage : stages) {
    const Bytes need = memory_need(resolved, stage.memory);
    if (worst && need <= verdict.need) continue;
    worst = &stage;
    verdict.need = need;
  }
  if (!worst) return verdict;
  verdict.worst_rank = worst->worst_rank;
  verdict.fits = verdict.need <= verdict.limit;
  if (verdict.fits) return verdict;
  if (worst->memory.peak_allocated <= verdict.limit) {
    verdict.breaks = crossing_component(worst->memory, verdict.limit);
    return verdict;
  }
  const auto sequence = allocation_sequence(resolved, work, worst->stage);
  const Allocation* refused = first_refused(sequence, verdict.limit);
  verdict.breaks = refused ? std::string(name_of(refused->category)) : crossing_component(worst->memory, verdict.limit);
  return verdict;
}

std::vector<std::int64_t> fewest_recomputed_layers(const Plan& plan) {
  if (plan.activations.recompute == Recompute::none) return {};
  const AttentionWork work = planned_attention_work(plan);
  const Bytes limit = memory_limit(plan);
  const auto stages = static_cast<std::size_t>(plan.parallel.pipeline);
  std::vector<std::int64_t> fewest(stages, 0);
  in_parallel(stages, stage_threads(plan), [&](std::size_t i, int) {
    Plan tried = plan;
    tried.activations.recompute_layers.assign(stages, 0);
    StageTables tables(tried, work);
    const auto stage = static_cast<std::int64_t>(i);
    std::int64_t& layers = tried.activations.recompute_layers[i];
    const std::vector<SchedulePoint> points = points_of(tried, stage);
    const auto fits = [&](std::int64_t count) {
      layers = count;
      const StagePeak peak = stage_peak(tried, tables.at(stage), stage, stage_sections(tried, stage), points);
      StageMemory least;  // without the allocator's replay, which takes longer than all the rest
      least.peak_allocated = peak.allocated();
      least.communicators = communicator_bytes(tried, stage);
      if (memory_need(tried, least) > limit) return false;
      return memory_need(tried, stage_memory(tried, work, stage, peak)) <= limit;
    };
    const std::int64_t most = stage_layers(tried, stage);
    while (fewest[i] < most && !fits(fewest[i])) ++fewest[i];
  });
  return fewest;
}

std::vector<int> automatic_bits(const Plan& plan) {
  if (!is_block_scaled(plan.activations.stored)) return {};
  const std::vector<std::int64_t> layers = layers_per_virtual_stage(plan);
  const bool even = std::all_of(layers.begin(), layers.end(), [&](std::int64_t n) { return n == layers.front(); });
  std::vector<int> counts;
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    const int chunks = chunks_in_flight(plan, stage);
    counts.push_back(even ? chunks : chunks * static_cast<int>(stage_layers(plan, stage)));
  }
  return bits_by_stage(counts, payload_bits(plan.activations.stored));
}

}  // namespace reckon
