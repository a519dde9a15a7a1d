#include "cost_model/stage_memory.h"

#include "cost_model/chunk_memory.h"
#include "cost_model/stage_states.h"

namespace reckon {

namespace {

ChunkMemory chunk_memory(const SectionTable& table, const ChunkSections& sections) {
  std::vector<RunMemory> runs;
  for (const SectionRun& run : runs_of(sections))
    runs.push_back(
        {&table.memory[variant(run.section)], table.whole[static_cast<std::size_t>(run.section.kind)], run.count});
  return chunk_memory(runs);
}

}  // namespace

SectionTable section_table(const Plan& plan, const AttentionWork& work, std::int64_t stage) {
  SectionTable table;
  table.whole = section_bytes(plan);
  for (const Section section : {Section::embedding, Section::dense_layer, Section::moe_layer, Section::head}) {
    if (!has_section(plan.model, section)) continue;
    const OpList list = section_ops(plan, section, work);
    const bool is_layer = section == Section::dense_layer || section == Section::moe_layer;
    for (const bool recomputed : {false, true}) {
      if (recomputed && !is_layer) continue;
      const Recompute mode = recomputed ? plan.activations.recompute : Recompute::none;
      table.memory[variant({section, 0, recomputed})] =
          section_memory(list, kept_tensors(plan, list, mode, static_cast<int>(stage)));
    }
  }
  return table;
}

StagePeak stage_peak(const Plan& plan, const SectionTable& table, std::int64_t stage,
                     const std::vector<ChunkSections>& chunks, const std::vector<SchedulePoint>& points) {
  std::vector<ChunkMemory> memory;
  for (const ChunkSections& sections : chunks) memory.push_back(chunk_memory(table, sections));
  const Bytes tokens = micro_batch_bytes(plan);
  MemoryMoment highest;
  for (const SchedulePoint& point : points) {
    const ChunkMemory& running = memory[static_cast<std::size_t>(point.chunk)];
    MemoryMoment moment = point.kind == ActionKind::forward ? running.forward : running.backward;
    moment.kept += tokens;
    moment.transient += constant_bytes(plan);
    for (std::size_t chunk = 0; chunk < memory.size(); ++chunk)
      moment.kept += point.alive[chunk] * (memory[chunk].kept + tokens);
    raise(highest, moment);
  }
  return {stage_states(plan, stage), highest.kept, highest.transient, stage_buffers(plan, stage)};
}

}  // namespace reckon
